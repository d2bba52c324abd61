import type { KeyStatus, KeyView } from "../../api/contract.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";

/** How a status is said, and how it looks. */
const statusWords: Readonly<Record<KeyStatus, readonly [text: string, tone: Tone]>> = {
  active: ["active", "ok"],
  disabled: ["disabled", "warn"],
  application_disabled: ["application disabled", "warn"],
  account_disabled: ["account disabled", "warn"],
  no_secret: ["no secret", "bad"],
  expired: ["expired", "bad"],
  revoked: ["revoked", "bad"],
};

export function KeyStatusBadge({ status }: Pick<KeyView, "status">) {
  const [text, tone] = statusWords[status];
  return <Badge tone={tone}>{text}</Badge>;
}

/** What people call it: its name, else the beginning of its newest secret. */
export function keyName({ name, secrets, id }: KeyView): string {
  return name === "" ? (secrets[0]?.hint ?? id) : name;
}

/** The last use of any of its secrets; null: never. */
export function lastUse({ secrets }: KeyView): string | null {
  const uses = secrets.flatMap(({ last_used_at: at }) => (at === null ? [] : [at]));
  return uses.toSorted().at(-1) ?? null;
}

/** Which scope sets the limits that are in force. */
export function limitsSource({ limits, plan }: KeyView): string {
  return limits === null ? `plan ${plan}` : "the key itself";
}
