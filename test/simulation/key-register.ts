import type { Caller, Key } from "../../src/domain/keys/key.ts";
import type { Limits, Plan } from "../../src/domain/limits/plan.ts";
import type { KeyPlan } from "./scenario.ts";

/** After a change of limits, earlier requests may still get what was available before. */
export const changeGraceMs = 10_000;

interface KnownKey {
  key: Key;
  limits: Limits;
  readonly publicIds: readonly string[];
  readonly queueTimeoutMs: number;
  readonly uncapped: KeyPlan["uncapped"];
  /** In the time of the run. */
  revokedAt: number | undefined;
}

/** All keys; changes reach all gateways at once. */
export class KeyRegister {
  /** The time of the last sale or return of units. */
  changedAt = Number.NEGATIVE_INFINITY;
  readonly #keys: ReadonlyMap<string, KnownKey>;

  constructor(keys: readonly KeyPlan[]) {
    this.#keys = new Map(
      keys.map(({ key, ...rest }) => {
        const known = { ...rest, key: { ...key, plan: `plan-${key.id}` } };
        return [key.id, { ...known, revokedAt: undefined }];
      }),
    );
  }

  callerOf(keyId: string, secret: number): Caller {
    const { key, limits, publicIds } = this.#find(keyId);
    return { key, limits, publicId: publicIds[secret] ?? "" };
  }

  isLive(keyId: string): boolean {
    return this.#find(keyId).revokedAt === undefined;
  }

  revokedAt(keyId: string): number | undefined {
    return this.#find(keyId).revokedAt;
  }

  revoke(keyId: string, now: number): void {
    this.#find(keyId).revokedAt ??= now;
    this.changedAt = now;
  }

  setLimits(keyId: string, limits: Limits): void {
    this.#find(keyId).limits = limits;
  }

  setUnits(keyId: string, provisionedUnits: number, now: number): void {
    this.changedAt = now;
    const known = this.#find(keyId);
    known.key = { ...known.key, provisionedUnits };
  }

  soldUnits(pool: string): number {
    return this.unitsByKey(pool).reduce((sum, [, units]) => sum + units, 0);
  }

  unitsByKey(pool: string): (readonly [keyId: string, units: number])[] {
    return [...this.#keys].flatMap(([keyId, { key, revokedAt }]) =>
      revokedAt === undefined && key.provisionedPool === pool && key.provisionedUnits > 0
        ? [[keyId, key.provisionedUnits] as const]
        : [],
    );
  }

  readonly unitsOf = (pool: string, keyId: string): number =>
    this.unitsByKey(pool).find(([holder]) => holder === keyId)?.[1] ?? 0;

  readonly holdings = (pool: string): ReadonlyMap<number, number> => {
    const holdings = new Map<number, number>();
    for (const [, units] of this.unitsByKey(pool)) {
      holdings.set(units, (holdings.get(units) ?? 0) + 1);
    }
    return holdings;
  };

  /** One plan for each key, because the queue timeout belongs to the plan. */
  plans(): readonly Plan[] {
    return [...this.#keys.values()].map(({ key, queueTimeoutMs, uncapped }) => ({
      name: key.plan,
      limits: undefined,
      provisioned: true,
      queueTimeoutMs,
      isIdempotent: false,
      responsesKeepMs: 0,
      whenLimitsUnavailable: "local",
      ...uncapped,
    }));
  }

  #find(keyId: string): KnownKey {
    const known = this.#keys.get(keyId);
    if (known === undefined) throw new Error(`no key ${keyId}`);
    return known;
  }
}
