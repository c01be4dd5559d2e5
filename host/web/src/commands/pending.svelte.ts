// What waits to be taken over by the sheet that adds: files that were dropped, pasted or shared.

class Pending {
  files = $state.raw<readonly File[]>([]);

  take(): readonly File[] {
    const { files } = this;
    this.files = [];
    return files;
  }
}

export const pending = new Pending();
