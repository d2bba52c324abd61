import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf } from "../../../../domain/limits/scope-use.ts";
import type { LimitRequest } from "../../../store.ts";
import { heldTo } from "../../memory/scope-charge.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { listOf } from "../connection/list-of.ts";
import { includeParameters, type IncludeRequest } from "./include-parameters.ts";
import { numberOf, readDecision, type AskedScopes, type Decided } from "./read-decision.ts";
import { callKey, newSlotsOf, scopeParameters, tagOf, windowsOf } from "./scope-parameters.ts";
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
  | { readonly is: "included"; readonly epochs: readonly string[] }
  /** The numbers of the windows, from 1, that are not those the worker knows. */
  | { readonly is: "lost"; readonly windows: readonly number[] };

/** The epochs of windows that a worker knows; an empty one is unknown. */
export type EpochOf = (windowKey: string) => string;

const unknownEpoch: EpochOf = () => "";

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

  async count(scopes: readonly LimitScope[], epochOf: EpochOf): Promise<Decided> {
    const windows = windowsOf(scopes);
    const { connection, random } = this.#options;
    const parameters = [...this.#common(), ...scopeParameters(scopes, windows, epochOf)];
    const reply = await connection.run(countScript, windows.keys, parameters);
    const asked = { scopes, windows, demand: { requests: 1, tokens: 0 }, overrun: 0 };
    return readDecision(reply, asked, random);
  }

  async uncount({ scopes, slot }: CountedRequest): Promise<void> {
    const windows = windowsOf(scopes);
    const ofScopes = scopeParameters(scopes, windows, unknownEpoch);
    const parameters = [...this.#common(), String(slot), ...ofScopes];
    await this.#options.connection.run(uncountScript, windows.keys, parameters);
  }

  async acquire(request: LimitRequest, epochOf: EpochOf): Promise<Decided> {
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
    const ofScopes = scopeParameters(scopes, windows, epochOf);
    const { connection, random } = this.#options;
    const reply = await connection.run(
      acquireScript,
      [callKeyOf(scopes, callId), ...windows.keys],
      [...this.#common(), ...amounts, ...ofScopes],
    );
    return readDecision(reply, asked, random);
  }

  async use(callId: string, scopes: readonly LimitScope[], tokens: number): Promise<void> {
    await this.#correct(useScript, { callId, scopes, tokens });
  }

  async settle(callId: string, scopes: readonly LimitScope[], tokens: number): Promise<void> {
    await this.#correct(settleScript, { callId, scopes, tokens });
  }

  /** Adds what a worker has admitted; adds nothing if the server has lost a window. */
  async include(request: Omit<IncludeRequest, "reservationTtlMs">): Promise<Included> {
    const { connection, reservationTtlMs } = this.#options;
    const { keys, parameters } = includeParameters({ ...request, reservationTtlMs });
    const reply = await connection.run(includeScript, keys, [...this.#common(), ...parameters]);
    const [verdict, ...told] = listOf(reply);
    return verdict === 0
      ? { is: "included", epochs: told.map(String) }
      : { is: "lost", windows: told.map(numberOf) };
  }

  /** The parameters that all scripts begin with: the epoch of a new window, and its longest life. */
  #common(): string[] {
    this.#epochs += 1;
    return [`${this.process}.${this.#epochs}`, String(this.#options.reservationTtlMs)];
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
      [...this.#common(), String(tokens), ...parameters],
    );
  }
}

interface CallUse {
  readonly callId: string;
  readonly scopes: readonly LimitScope[];
  readonly tokens: number;
}

function callKeyOf([first]: readonly LimitScope[], callId: string): string {
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return callKey(tagOf(first), callId);
}
