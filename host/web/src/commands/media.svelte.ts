// The class of the device: how wide it is and how it is pointed at.

class Media {
  #phone = matchMedia('(max-width: 639px)');
  #tablet = matchMedia('(max-width: 1023px)');
  #touch = matchMedia('(pointer: coarse)');
  isPhone = $state(this.#phone.matches);
  /** Narrower than a desk: the rail is icons only. */
  isNarrow = $state(this.#tablet.matches);
  isTouch = $state(this.#touch.matches);

  constructor() {
    this.#phone.addEventListener('change', (event) => (this.isPhone = event.matches));
    this.#tablet.addEventListener('change', (event) => (this.isNarrow = event.matches));
    this.#touch.addEventListener('change', (event) => (this.isTouch = event.matches));
  }
}

export const media = new Media();
