/** Looks without an answer after which control is asked for one. */
const probeAfter = 5;
/** Three seconds: on a busy machine, a control process takes more than one to begin. */
const silentAfter = 60;

/**
 * Whether a connected control process still answers. Counts looks instead of time, so that a pause
 * of this process does not count as silence of the other.
 */
export class ControlSilence {
  #heard = -1;
  #looks = 0;
  #isSilent = false;

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Whether to send control something that it answers. */
  get isProbeDue(): boolean {
    return this.#looks > 0 && this.#looks % probeAfter === 0;
  }

  /** Call regularly. `heard`: messages so far; `isAsked`: whether answers are awaited. */
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
