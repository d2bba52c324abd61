import { RefusalLog } from "../../../admission/refusals/refusal-log.ts";
import type { Refusal, RefusalFilter } from "../../../domain/errors/refusal.ts";

/** The last refusals of this gateway. */
export class KeptRefusals {
  readonly #own = new RefusalLog();

  record(refusal: Refusal): void {
    this.#own.record(refusal);
  }

  async find(id: string): Promise<Refusal | undefined> {
    return this.#own.find(id);
  }

  async list(filter: RefusalFilter, limit: number): Promise<readonly Refusal[]> {
    return this.#own.list(filter, limit);
  }
}
