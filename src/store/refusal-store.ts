import type { Refusal, RefusalFilter } from "../domain/errors/refusal.ts";

/** The last refusals of several gateways. All methods throw when the store is unavailable. */
export interface RefusalStore {
  keep(refusal: Refusal): Promise<void>;
  /** By request id. */
  find(id: string): Promise<Refusal | undefined>;
  /** Newest first. */
  list(filter: RefusalFilter, limit: number): Promise<readonly Refusal[]>;
  close(): void;
}
