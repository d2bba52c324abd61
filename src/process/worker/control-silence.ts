/** Looks without an answer until control is asked for one. */
const probeAfter = 5;
/** Three seconds: a control process that begins on a busy machine takes more than one. */
const silentAfter = 60;

/**
 * Whether control, which is connected, answers. Counts looks instead of time, so that a pause of
 * this process is no silence of the other.
 */
export class ControlSilence {
  #heard = -1;
  #looks = 0;
  #isSilent = false;

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Whether control should be told something that it answers. */
  get isProbeDue(): boolean {
    return this.#looks > 0 && this.#looks % probeAfter === 0;
  }

  /** To be called regularly. `heard`: messages so far; `isAsked`: whether answers are awaited. */
  look(heard: number, isAsked: boolean): void {
    if (heard !== this.#heard) {
      this.#heard = heard;
      this.#looks = 0;
      this.#isSilent = false;
    } else if (isAsked || this.#isSilent) this.#looks += 1;
    else this.#looks = 0;
    if (this.#looks >= silentAfter) this.#isSilent = true;
  }
}
