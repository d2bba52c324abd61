import type { KeyStatus, KeyUseView, KeyView } from "../../api/contract.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { LimitBar } from "../../parts/numbers.tsx";

type WindowUse = KeyUseView["requests"];

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

/** What sets a limit. `plan`: that of the key. */
export function limitSource(setBy: WindowUse["set_by"], plan: string | null): string {
  switch (setBy) {
    case "plan":
      return `plan ${plan ?? ""}`;
    case "key":
      return "the key itself";
    case "account":
      return "the account, which all its keys share";
  }
}

/** Which scope sets the limits of a key. */
export function limitsSource({ limits, plan }: KeyView): string {
  return limitSource(limits === null ? "plan" : "key", plan);
}

/** What a key uses of its limits in force, and who sets them. */
export function UseOfLimits({ use }: { readonly use: KeyUseView }) {
  const limits = [
    { name: "Requests", window: use.requests },
    { name: "Tokens", window: use.tokens },
  ];
  return limits.map(({ name, window }) => (
    <LimitBar
      key={name}
      name={name}
      used={window.used}
      limit={window.limit}
      setBy={limitSource(window.set_by, use.plan)}
    />
  ));
}
