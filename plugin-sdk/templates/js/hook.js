/// <reference path="./schema/svc-plugin.d.ts" />
// Tells a site which of its files were downloaded. Something to begin with: put your site in its place.

export async function onDone(event) {
  await http.post('https://files.example.org/seen').form({ name: event.fileName ?? '' }).send();
}

// Tries a file again in a minute that the site keeps back: as one of the automatic retries, while there are some left.
export function onError(event) {
  if (event.errorKind === 'forbidden') return { delayMs: 60_000 };
}
