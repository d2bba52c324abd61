import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf } from "../../../../domain/limits/scope-use.ts";
import type { LimitRequest } from "../../../store.ts";
import type { LeaseId, LeaseRest, LeaseWish } from "../../leases/lease-account.ts";
import { heldTo } from "../../memory/scope-charge.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { listOf } from "../connection/list-of.ts";
import { includeParameters, type IncludeRequest } from "./include-parameters.ts";
import { includeScript } from "./scripts/include-script.ts";
import { giveBackScript, leaseScript } from "./scripts/lease-scripts.ts";
import {
  readDecision,
  readLease,
  type AskedScopes,
  type ChargedLease,
  type Decided,
} from "./read-decision.ts";
import {
  callKey,
  epochKey,
  leaseKey,
  newSlotsOf,
  scopeParameters,
  tagOf,
  windowsOf,
} from "./scope-parameters.ts";
import {
  acquireScript,
  countScript,
  settleScript,
  uncountScript,
  useScript,
} from "./scripts/call-scripts.ts";

export interface ValkeyLimitsOptions {
  readonly connection: Pick<ValkeyConnection, "run">;
  readonly random: () => number;
  readonly reservationTtlMs: number;
  /** What the server wrote before is void; in its time, in ms. Default: nothing is. */
  readonly validSince?: () => number;
}

/** What a worker knows of the account of a decision. */
export interface KnownEpoch {
  /** Empty: none. */
  readonly epoch: string;
  /** Whether to answer `held` instead of a refusal, as long as leases are in the way. */
  readonly mayWait: boolean;
}

export interface AskedLease {
  readonly id: LeaseId;
  readonly scopes: readonly LimitScope[];
  readonly wish: LeaseWish;
  /** At most one of so many parts of what is left. */
  readonly parts: number;
}

const noDemand = { requests: 0, tokens: 0 };

export type Included =
  | { readonly is: "included"; readonly epoch: string }
  /** The account's epoch is not the one that the worker knows. */
  | { readonly is: "lost" };

/**
 * The decisions about limits in Valkey, each in one round trip and in the server's time. All throw
 * `ValkeyUnavailable`.
 */
export class ValkeyLimits {
  readonly #options: ValkeyLimitsOptions;
  /** Differs for each process; the count makes an epoch of it. */
  readonly process: string;
  #epochs = 0;

  constructor(options: ValkeyLimitsOptions) {
    this.#options = options;
    this.process = Math.floor(options.random() * 2 ** 52).toString(36);
  }

  async count(scopes: readonly LimitScope[], known: KnownEpoch): Promise<Decided> {
    const windows = windowsOf(scopes);
    const { connection, random } = this.#options;
    const reply = await connection.run(
      countScript,
      [epochKeyOf(scopes), ...windows.keys],
      [...this.#deciding(known), ...scopeParameters(scopes, windows)],
    );
    const asked = { scopes, windows, demand: { requests: 1, tokens: 0 }, overrun: 0 };
    return readDecision(reply, asked, random);
  }

  /** Under another epoch than this one, the windows do not have the request. */
  async uncount({ scopes, slot }: CountedRequest, epoch: string): Promise<void> {
    const windows = windowsOf(scopes);
    const ofRequest = [this.#since, this.#lifetime, String(slot), epoch];
    const parameters = [...ofRequest, ...scopeParameters(scopes, windows)];
    await this.#options.connection.run(uncountScript, windows.keys, parameters);
  }

  async acquire(request: LimitRequest, known: KnownEpoch): Promise<Decided> {
    const { callId, scopes, tokens, mostTokens = tokens, counted } = request;
    const windows = windowsOf(scopes);
    const demand = { requests: counted === undefined ? 1 : 0, tokens };
    const asked: AskedScopes = {
      scopes,
      windows,
      demand,
      overrun: Math.max(0, mostTokens - tokens),
    };
    const amounts = [demand.requests, tokens, asked.overrun].map(String);
    const { connection, random } = this.#options;
    const reply = await connection.run(
      acquireScript,
      [epochKeyOf(scopes), callKeyOf(scopes, callId), ...windows.keys],
      [...this.#deciding(known), ...amounts, ...scopeParameters(scopes, windows)],
    );
    return readDecision(reply, asked, random);
  }

  /** Charges what this worker may admit by itself. Undefined: too little is left. */
  async lease(asked: AskedLease, epoch: string): Promise<ChargedLease | undefined> {
    const { id, scopes, wish, parts } = asked;
    const windows = windowsOf(scopes);
    const amounts = [parts, wish.requests, wish.tokens, wish.overrun].map(String);
    const reply = await this.#options.connection.run(
      leaseScript,
      [epochKeyOf(scopes), this.#leaseKeyOf(scopes, id), ...windows.keys],
      [...this.#common(epoch), ...amounts, ...scopeParameters(scopes, windows)],
    );
    return readLease(reply, { scopes, windows, demand: noDemand, overrun: 0 });
  }

  /** `rest`: what no call has used; undefined: all. Changes nothing when it runs again. */
  async giveBack(
    id: LeaseId,
    scopes: readonly LimitScope[],
    rest: LeaseRest | undefined,
  ): Promise<void> {
    const { keys, scopes: ofWindows } = windowsOf(scopes);
    const { requests = -1, tokens = -1, overrun = -1, calls = [] } = rest ?? {};
    const parameters: (string | number)[] = [
      this.#since,
      this.#lifetime,
      requests,
      tokens,
      overrun,
      keys.length,
    ];
    for (const scope of ofWindows) parameters.push(newSlotsOf(nameOf(scope)), heldTo(scope));
    const callKeys: string[] = [];
    for (const [callId, call] of calls) {
      callKeys.push(callKeyOf(scopes, callId));
      parameters.push(call.tokens, call.overrun);
    }
    await this.#options.connection.run(
      giveBackScript,
      [this.#leaseKeyOf(scopes, id), ...keys, ...callKeys],
      parameters.map(String),
    );
  }

  async use(callId: string, scopes: readonly LimitScope[], tokens: number): Promise<void> {
    await this.#correct(useScript, { callId, scopes, tokens });
  }

  async settle(callId: string, scopes: readonly LimitScope[], tokens: number): Promise<void> {
    await this.#correct(settleScript, { callId, scopes, tokens });
  }

  /** Adds what a worker has admitted; adds nothing if the server has lost the account. */
  async include(
    request: Omit<IncludeRequest, "reservationTtlMs">,
    epoch: string,
  ): Promise<Included> {
    const { connection, reservationTtlMs } = this.#options;
    const { keys, parameters } = includeParameters({ ...request, reservationTtlMs });
    const all = [...this.#common(epoch), ...parameters];
    const [verdict, told] = listOf(await connection.run(includeScript, keys, all));
    return verdict === 0 ? { is: "included", epoch: String(told) } : { is: "lost" };
  }

  /**
   * The parameters of scripts that need an epoch: since when data are valid, an epoch for an account
   * that has none, the longest life of a window, and the epoch that the worker knows.
   */
  #common(epoch: string): string[] {
    this.#epochs += 1;
    const since = this.#since;
    return [since, `${this.process}.${this.#epochs}@${since}`, this.#lifetime, epoch];
  }

  /** Those of a decision. */
  #deciding({ epoch, mayWait }: KnownEpoch): string[] {
    return [...this.#common(epoch), mayWait ? "1" : "0"];
  }

  #leaseKeyOf(scopes: readonly LimitScope[], id: LeaseId): string {
    return leaseKey(tagOfAll(scopes), `${this.process}.${id}`);
  }

  get #since(): string {
    return String(this.#options.validSince?.() ?? 0);
  }

  get #lifetime(): string {
    return String(this.#options.reservationTtlMs);
  }

  async #correct(script: typeof useScript, call: Correction): Promise<void> {
    const { callId, scopes, tokens } = call;
    const { keys, scopes: ofWindows } = windowsOf(scopes);
    const ofTokens = ofWindows.flatMap((scope, index) => {
      const key = keys[index];
      return scope.unit === "tokens" && key !== undefined ? [{ scope, key }] : [];
    });
    const parameters = ofTokens.flatMap(({ scope }) => [
      String(newSlotsOf(nameOf(scope))),
      String(heldTo(scope)),
    ]);
    await this.#options.connection.run(
      script,
      [callKeyOf(scopes, callId), ...ofTokens.map(({ key }) => key)],
      [this.#since, this.#lifetime, String(tokens), ...parameters],
    );
  }
}

interface Correction {
  readonly callId: string;
  readonly scopes: readonly LimitScope[];
  readonly tokens: number;
}

function epochKeyOf(scopes: readonly LimitScope[]): string {
  return epochKey(tagOfAll(scopes));
}

function callKeyOf(scopes: readonly LimitScope[], callId: string): string {
  return callKey(tagOfAll(scopes), callId);
}

function tagOfAll([first]: readonly LimitScope[]): string {
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return tagOf(first);
}
