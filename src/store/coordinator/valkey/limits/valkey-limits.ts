import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf } from "../../../../domain/limits/scope-use.ts";
import type { LimitRequest } from "../../../store.ts";
import { heldTo } from "../../memory/scope-charge.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { listOf } from "../connection/list-of.ts";
import { includeParameters, type IncludeRequest } from "./include-parameters.ts";
import { readDecision, type AskedScopes, type Decided } from "./read-decision.ts";
import {
  callKey,
  epochKey,
  newSlotsOf,
  scopeParameters,
  tagOf,
  windowsOf,
} from "./scope-parameters.ts";
import {
  acquireScript,
  countScript,
  includeScript,
  settleScript,
  uncountScript,
  useScript,
} from "./scripts.ts";

export interface ValkeyLimitsOptions {
  readonly connection: Pick<ValkeyConnection, "run">;
  readonly random: () => number;
  readonly reservationTtlMs: number;
}

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

  /** `epoch`: the one of the account that the worker knows; empty: it knows none. */
  async count(scopes: readonly LimitScope[], epoch: string): Promise<Decided> {
    const windows = windowsOf(scopes);
    const { connection, random } = this.#options;
    const reply = await connection.run(
      countScript,
      [epochKeyOf(scopes), ...windows.keys],
      [...this.#common(epoch), ...scopeParameters(scopes, windows)],
    );
    const asked = { scopes, windows, demand: { requests: 1, tokens: 0 }, overrun: 0 };
    return readDecision(reply, asked, random);
  }

  async uncount({ scopes, slot }: CountedRequest): Promise<void> {
    const windows = windowsOf(scopes);
    const parameters = [this.#lifetime, String(slot), ...scopeParameters(scopes, windows)];
    await this.#options.connection.run(uncountScript, windows.keys, parameters);
  }

  async acquire(request: LimitRequest, epoch: string): Promise<Decided> {
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
      [...this.#common(epoch), ...amounts, ...scopeParameters(scopes, windows)],
    );
    return readDecision(reply, asked, random);
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
   * The parameters of scripts that need an epoch: one for an account that has none, the longest
   * life of a window, and the epoch that the worker knows.
   */
  #common(epoch: string): string[] {
    this.#epochs += 1;
    return [`${this.process}.${this.#epochs}`, this.#lifetime, epoch];
  }

  get #lifetime(): string {
    return String(this.#options.reservationTtlMs);
  }

  async #correct(script: typeof useScript, call: CallUse): Promise<void> {
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
      [this.#lifetime, String(tokens), ...parameters],
    );
  }
}

interface CallUse {
  readonly callId: string;
  readonly scopes: readonly LimitScope[];
  readonly tokens: number;
}

function epochKeyOf([first]: readonly LimitScope[]): string {
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return epochKey(tagOf(first));
}

function callKeyOf([first]: readonly LimitScope[], callId: string): string {
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return callKey(tagOf(first), callId);
}
