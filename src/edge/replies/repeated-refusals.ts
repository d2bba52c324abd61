import type { RequestKind } from "../../domain/limits/limit-scope.ts";
import { type GatewayError, overloaded } from "../../domain/errors/gateway-error.ts";
import type { Caller, Key } from "../../domain/keys/key.ts";
import { repeatedlyWrongKey } from "./route-refusal.ts";
import { type Dialect, type PreparedRefusal, prepareRefusal } from "./error-reply.ts";

interface RefusedRequest {
  readonly kind: RequestKind;
  readonly caller: Caller;
}

/** For how long a refusal is repeated at most: rate-limit windows advance once a second. */
const secondMs = 1_000;
/** Wrong keys of one address in a second that get individual answers. */
const wrongKeysASecond = 20;
/** Most keys and most addresses remembered in a second; others are refused individually. */
const mostNames = 10_000;

/** Number of different `retry-after` values of calls that are shed. */
const variants = 64;
/** Coprime to `variants`, so all of them are used equally often. */
const stride = 23;
/** Prepared refusals of one second that are recorded for `sluice explain`. */
const explainedASecond = 100;

/**
 * Refusals that are sent again at little cost: under overload, to a key whose refusal still holds in
 * this second, and to an address with many wrong keys. Times are monotonic milliseconds.
 */
export class PreparedRefusals {
  readonly #dialect: Dialect;
  readonly #shed: readonly PreparedRefusal[];
  readonly #wrongKey: PreparedRefusal;
  readonly #ofKeys = new Map<string, RefusedKey>();
  readonly #ofAddresses = new Map<string, number>();
  #shedIndex = 0;
  #explained = 0;
  #second = 0;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
    this.#shed = Array.from({ length: variants }, (_, index) =>
      prepareRefusal(overloaded(index / (variants - 1)), dialect),
    );
    this.#wrongKey = prepareRefusal(repeatedlyWrongKey(dialect.credential), dialect);
  }

  /** The refusal of a call that is shed. */
  nextShed(): PreparedRefusal {
    this.#shedIndex = (this.#shedIndex + stride) % variants;
    const refusal = this.#shed[this.#shedIndex];
    if (refusal === undefined) throw new RangeError("there is no such variant");
    return refusal;
  }

  /** The kept refusal of a key; undefined also when the limits of the caller have changed. */
  ofKey(kind: RequestKind, caller: Caller, nowMs: number): PreparedRefusal | undefined {
    this.#advance(nowMs);
    if (this.#ofKeys.size === 0) return undefined;
    const refused = this.#ofKeys.get(nameOf(kind, caller));
    const isSame =
      refused?.limits === caller.limits && refused.accountLimits === caller.accountLimits;
    return isSame && nowMs < refused.untilMs ? refused.prepared : undefined;
  }

  /** Keeps the refusal of a key for its number of requests. */
  keepOfKey(refused: RefusedRequest, error: GatewayError, nowMs: number): void {
    this.#advance(nowMs);
    if (this.#ofKeys.size >= mostNames) return;
    const { limits, accountLimits } = refused.caller;
    const name = nameOf(refused.kind, refused.caller);
    const prepared = prepareRefusal(error, this.#dialect);
    // The seconds of a server that shares limits begin at another time than those here.
    const untilMs = nowMs + Number(error.headers["retry-after-ms"] ?? secondMs);
    this.#ofKeys.set(name, { limits, accountLimits, prepared, untilMs });
  }

  /** Counts a wrong key of an address; returns the refusal to send once there are too many. */
  ofAddress(address: string, nowMs: number): PreparedRefusal | undefined {
    this.#advance(nowMs);
    const count = (this.#ofAddresses.get(address) ?? 0) + 1;
    if (count > 1 || this.#ofAddresses.size < mostNames) this.#ofAddresses.set(address, count);
    return count > wrongKeysASecond ? this.#wrongKey : undefined;
  }

  isExplained(nowMs: number): boolean {
    this.#advance(nowMs);
    this.#explained += 1;
    return this.#explained <= explainedASecond;
  }

  #advance(nowMs: number): void {
    const second = Math.floor(nowMs / secondMs);
    if (second === this.#second) return;
    this.#second = second;
    this.#explained = 0;
    this.#ofKeys.clear();
    this.#ofAddresses.clear();
  }
}

interface RefusedKey extends Pick<Caller, "limits" | "accountLimits"> {
  readonly prepared: PreparedRefusal;
  /** When the refusal says that there is room again. */
  readonly untilMs: number;
}

function nameOf(kind: RequestKind, { key }: Caller): string {
  return `${kind} ${key.id}`;
}

export interface Overload {
  /** Whether the call is shed; asked once for each call, before its body is read. */
  refusesUnread(key: Key): boolean;
  /** Delays refusals until it resolves. */
  readonly answersAfter: Promise<void> | undefined;
}
