export function version(): string;
