import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

/** The events of one stream that nobody can read. What they held is lost to the caller. */
export class MalformedEvents {
  readonly #limit: number;
  #count = 0;

  /** `limit`: so many are skipped. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  /** Notes one. Throws `UpstreamFailure` when the answer must end with it. */
  skip({ mayGoOn }: { readonly mayGoOn: boolean }): void {
    this.#count += 1;
    if (mayGoOn && this.#count <= this.#limit) return;
    throw new UpstreamFailure({
      kind: "broken-answer",
      message: "the upstream sent an event that is not what it should be",
    });
  }
}
