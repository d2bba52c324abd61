import type { Clock } from "../../../../domain/clock.ts";
import { StorageUnavailable } from "../../../errors.ts";
import type { ClaimDecision, ClaimedRequest, Joins } from "../../../joins.ts";
import {
  ValkeyUnavailable,
  type ValkeyConnection,
  type ValkeyScript,
} from "../connection/valkey-connection.ts";
import {
  claimScript,
  lookScript,
  releaseScript,
  renewScript,
  unsavedScript,
} from "./join-scripts.ts";

export interface ValkeyJoinsOptions {
  readonly connection: ValkeyConnection;
  readonly clock: Pick<Clock, "schedule">;
  /** Unique among all processes and never used again. */
  readonly process: string;
}

interface OwnClaim extends ClaimedRequest {
  isUnsaved: boolean;
}

/** A claim ends this long after its owner has died. */
const claimLifeMs = 30_000;
const renewMs = 10_000;
/** Longest wait for another owner. The asker then looks for an answer and claims again. */
const waitMs = 30_000;
/** Time between two looks at a claim that is waited for: its owner may have died. */
const lookMs = 1_000;
const channel = "sluice:joins";

/** Which process runs which request, decided by a server for several gateways. */
export class ValkeyJoins implements Joins {
  readonly #options: ValkeyJoinsOptions;
  readonly #own = new Map<string, OwnClaim>();
  /** How to end the wait for a claim, by its id. */
  readonly #waits = new Map<string, () => void>();
  readonly #stopHearing: () => void;
  #cancelRenewal: () => void = () => undefined;

  constructor(options: ValkeyJoinsOptions) {
    this.#options = options;
    this.#stopHearing = options.connection.subscribe(channel, (id) => this.#waits.get(id)?.());
  }

  async claim(request: ClaimedRequest): Promise<ClaimDecision> {
    const { id, requestDigest } = request;
    // The owner may release it before the answer is read here.
    const wait = this.#wait(id);
    let decision: unknown;
    try {
      decision = await this.#run(claimScript, id, [requestDigest, String(claimLifeMs)]);
    } catch (error) {
      wait.end();
      throw unavailable(error);
    }
    if (decision === "wait") return wait.ended;
    wait.end();
    if (decision !== "owner") return decision === "reused" ? "reused" : "unsaved";
    this.#own.set(id, { ...request, isUnsaved: false });
    if (this.#own.size === 1) this.#planRenewal();
    return "owner";
  }

  release(id: string): void {
    this.#waits.get(id)?.();
    if (this.#own.delete(id)) this.#tell(releaseScript, id, [channel, id]);
  }

  unsaved(id: string): void {
    const claim = this.#own.get(id);
    if (claim === undefined) return;
    claim.isUnsaved = true;
    this.#tell(unsavedScript, id, [channel, id]);
  }

  /** Releases everything. */
  close(): void {
    this.#cancelRenewal();
    for (const id of [...this.#own.keys(), ...this.#waits.keys()]) this.release(id);
    this.#stopHearing();
  }

  #wait(id: string): { readonly ended: Promise<"ended">; readonly end: () => void } {
    this.#waits.get(id)?.();
    const { clock } = this.#options;
    const { promise: ended, resolve } = Promise.withResolvers<"ended">();
    let cancelLook = (): void => undefined;
    const end = (): void => {
      cancel();
      cancelLook();
      if (this.#waits.get(id) === end) this.#waits.delete(id);
      resolve("ended");
    };
    const look = async (): Promise<void> => {
      const goesOn = await this.#run(lookScript, id, []).catch(() => 1);
      if (this.#waits.get(id) !== end) return;
      if (goesOn === 0) end();
      else cancelLook = clock.schedule(() => void look(), lookMs);
    };
    const cancel = clock.schedule(end, waitMs);
    cancelLook = clock.schedule(() => void look(), lookMs);
    this.#waits.set(id, end);
    return { ended, end };
  }

  #planRenewal(): void {
    this.#cancelRenewal();
    this.#cancelRenewal = this.#options.clock.schedule(() => {
      for (const { id, requestDigest, isUnsaved } of this.#own.values()) {
        this.#tell(renewScript, id, [requestDigest, String(claimLifeMs), isUnsaved ? "1" : ""]);
      }
      if (this.#own.size > 0) this.#planRenewal();
    }, renewMs);
  }

  /** What does not arrive ends with the life of the claim. */
  #tell(script: ValkeyScript, id: string, parameters: readonly string[]): void {
    this.#run(script, id, parameters).catch(() => undefined);
  }

  #run(script: ValkeyScript, id: string, parameters: readonly string[]): Promise<unknown> {
    const { connection, process } = this.#options;
    return connection.run(script, [`sluice:join:{${id}}`], [process, ...parameters]);
  }
}

function unavailable(error: unknown): unknown {
  if (!(error instanceof ValkeyUnavailable)) return error;
  return new StorageUnavailable(error.message, { cause: error });
}
