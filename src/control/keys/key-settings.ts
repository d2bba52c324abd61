import type { Key } from "../../domain/keys/key.ts";
import type { KeySettings } from "./issue-key.ts";
import type { WantedSettings } from "../contract/keys.ts";
import { invalidField } from "../operation/refusals.ts";
import { namesCapacity } from "./key-rules.ts";
import { entityForm } from "../values/api-form.ts";
import type { Platform } from "../services.ts";

/** Replaces a duration by the time at which it ends. Throws 400. */
export function withExpiry<Body extends WantedSettings>(body: Body, now: number): Body {
  const { expires_in_seconds: seconds, expires_at: time } = body;
  if (seconds === undefined) return body;
  if (time !== undefined) {
    throw invalidField("expires_in_seconds", "send it or `expires_at`, not both");
  }
  return { ...body, expires_at: new Date(now + seconds * 1000).toISOString() };
}

/** The new settings of a key: the fields of the body, and the others unchanged. */
export function applySettings(
  current: KeySettings | undefined,
  body: WantedSettings,
  platform: Platform,
): KeySettings {
  return {
    plan: body.plan ?? current?.plan ?? "",
    limits: limitsOf(current, body, platform),
    ...capacityOf(current, body, platform),
    allowedModels: pick(body.allowed_models, current?.allowedModels),
    allowedNetworks: pick(body.allowed_networks, current?.allowedNetworks),
    name: body.name ?? current?.name ?? "",
    note: body.note ?? current?.note ?? "",
    expiresAt: pick(timeOf(body.expires_at), current?.expiresAt),
  };
}

export function disabledSince(
  current: Pick<Key, "disabledAt">,
  wanted: boolean | undefined,
  now: number,
): number | undefined {
  if (wanted === undefined) return current.disabledAt;
  return wanted ? (current.disabledAt ?? now) : undefined;
}

function capacityOf(
  current: KeySettings | undefined,
  body: WantedSettings,
  { pools }: Platform,
): Pick<KeySettings, "provisionedUnits" | "provisionedPool"> {
  const provisionedUnits = body.provisioned_units ?? current?.provisionedUnits ?? 0;
  if (provisionedUnits === 0) return { provisionedUnits, provisionedPool: undefined };
  const named = pick(body.provisioned_pool, current?.provisionedPool);
  const [first, ...others] = pools.keys();
  // Units that the request does not name stay unchanged.
  const only = namesCapacity(body) && others.length === 0 ? first : undefined;
  return { provisionedUnits, provisionedPool: named ?? only };
}

function limitsOf(
  current: KeySettings | undefined,
  { plan, limits }: WantedSettings,
  platform: Platform,
): KeySettings["limits"] {
  if (limits === null) return undefined;
  if (limits !== undefined) return entityForm(limits);
  // Custom limits do not apply to a plan with limits of its own.
  const hasOwn = plan !== undefined && platform.plans.get(plan)?.limits !== undefined;
  return hasOwn ? undefined : current?.limits;
}

/** Null removes a value, undefined keeps it. */
function pick<Value>(wanted: Value | null | undefined, current: Value | undefined) {
  if (wanted === undefined) return current;
  return wanted ?? undefined;
}

function timeOf(text: string | null | undefined): number | null | undefined {
  return typeof text === "string" ? Date.parse(text) : text;
}
