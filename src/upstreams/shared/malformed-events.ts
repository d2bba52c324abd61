import { brokenAnswer } from "../../domain/errors/upstream-failure.ts";

/** Counts the malformed events of one stream. The caller does not get their content. */
export class MalformedEvents {
  readonly #limit: number;
  #count = 0;

  /** `limit`: how many are skipped. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  /** Counts one. Throws `UpstreamFailure` when it must end the answer. */
  skip({ mayGoOn }: { readonly mayGoOn: boolean }): void {
    this.#count += 1;
    if (mayGoOn && this.#count <= this.#limit) return;
    throw brokenAnswer("the upstream sent a malformed event");
  }
}
