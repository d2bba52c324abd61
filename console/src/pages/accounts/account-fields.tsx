import type { AccountView, NewAccount } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Checkbox, Field } from "../../parts/field.tsx";

/** Settings of an account as they are typed; plans are separated by commas. */
export interface AccountDraft {
  readonly name: string;
  readonly plans: string;
  readonly keys: string;
  readonly requests: string;
  readonly tokens: string;
  readonly note: string;
}

export const accountLabels: Readonly<Record<keyof AccountDraft, string>> = {
  name: "Name",
  plans: "Plans of its keys",
  keys: "Maximum keys",
  requests: "Requests per minute of all its keys",
  tokens: "Tokens per minute of all its keys",
  note: "Note",
};

export const emptyAccount: AccountDraft = {
  name: "",
  plans: "",
  keys: "100",
  requests: "",
  tokens: "",
  note: "",
};

export function accountDraft({ name, note, plans, max_keys, limits }: AccountView): AccountDraft {
  return {
    name,
    note,
    plans: plans.toSorted().join(", "),
    keys: String(max_keys),
    requests: String(limits?.requests_per_minute ?? ""),
    tokens: String(limits?.tokens_per_minute ?? ""),
  };
}

export function newAccountOf(draft: AccountDraft): NewAccount {
  const { name, note, requests, tokens } = draft;
  const hasLimits = requests !== "" || tokens !== "";
  return {
    name: name.trim(),
    note,
    plans: plansOf(draft),
    max_keys: Number(draft.keys),
    limits: hasLimits
      ? { requests_per_minute: Number(requests), tokens_per_minute: Number(tokens) }
      : null,
  };
}

function plansOf({ plans }: AccountDraft): string[] {
  return plans === "" ? [] : plans.split(", ");
}

export function AccountFields({
  draft,
  onChange,
}: {
  readonly draft: AccountDraft;
  readonly onChange: (changed: Partial<AccountDraft>) => void;
}) {
  const configured = useRead("/plans").data?.data.map(({ name }) => name) ?? [];
  const chosen = plansOf(draft);
  const choose = (plan: string, isChosen: boolean): void => {
    const next = isChosen ? [...chosen, plan] : chosen.filter((each) => each !== plan);
    onChange({ plans: next.toSorted().join(", ") });
  };
  const hasLimits = draft.requests !== "" || draft.tokens !== "";
  const text = (name: keyof AccountDraft) => ({
    label: accountLabels[name],
    value: draft[name],
    onChange: (value: string) => onChange({ [name]: value }),
  });
  const number = { type: "number", min: 1, isRequired: hasLimits } as const;
  return (
    <>
      <Field {...text("name")} name="name" isRequired hasFocus />
      <fieldset className="fieldset">
        <legend className="label">{accountLabels.plans}</legend>
        <div className="row">
          {[...new Set([...configured, ...chosen])].map((plan) => (
            <Checkbox
              key={plan}
              label={plan}
              isSelected={chosen.includes(plan)}
              onChange={(isChosen) => choose(plan, isChosen)}
            />
          ))}
        </div>
        <span className="hint">
          Its account holders can create keys on these. Without one, they can create none.
        </span>
      </fieldset>
      <Field {...text("keys")} name="max_keys" type="number" min={0} isRequired />
      <Field {...text("requests")} {...number} />
      <Field
        {...text("tokens")}
        {...number}
        name="limits"
        hint="In addition to the limits of each key. Leave both empty for none."
      />
      <Field {...text("note")} name="note" rows={2} />
    </>
  );
}
