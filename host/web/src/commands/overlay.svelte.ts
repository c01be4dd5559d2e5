// The one dialog that may be open, and what it is about. Only a person's deed opens one.

export type Overlay =
  | { kind: 'add'; text: string }
  | { kind: 'palette' }
  | { kind: 'help' }
  | { kind: 'needs' }
  | { kind: 'facets' }
  | { kind: 'remove'; ids: string[] }
  | { kind: 'rename'; id: string }
  | { kind: 'link'; id: string }
  | { kind: 'folder'; ids: string[] }
  | { kind: 'checksum'; id: string }
  | { kind: 'signIn'; id: string }
  | { kind: 'trust'; id: string }
  | { kind: 'startOver'; id: string };

class Overlays {
  current = $state.raw<Overlay | null>(null);

  open(overlay: Overlay): void {
    this.current = overlay;
  }

  close(): void {
    this.current = null;
  }
}

export const overlays = new Overlays();
