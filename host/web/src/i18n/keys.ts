// Written by tools/words.mjs from locales/en.json.
export interface Words {
  "action.reload": null;
  "app.name": null;
  "nav.main": null;
  "nav.more": null;
  "nav.skip": null;
  "nav.tasks": null;
  "screen.failed": null;
  "screen.loading": null;
}
