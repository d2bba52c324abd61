import type { AccountView, Choices, NewAccount } from "../../api/contract.ts";
import { Checkbox, Field } from "../../parts/field.tsx";
import type { Bind } from "../../parts/form.tsx";

export const accountLabels = {
  name: "Name",
  plans: "Plans of its keys",
  max_keys: "Maximum keys",
  requests: "Requests per minute of all its keys",
  tokens: "Tokens per minute of all its keys",
  time_zone: "Time zone of its new budgets",
  note: "Note",
};
/** Settings of an account as they are typed; plans are separated by commas. */
export type AccountDraft = Readonly<Record<keyof typeof accountLabels, string>>;

export const emptyAccount: AccountDraft = {
  name: "",
  plans: "",
  max_keys: "100",
  requests: "",
  tokens: "",
  time_zone: "UTC",
  note: "",
};

export function accountDraft({
  name,
  note,
  plans,
  max_keys,
  limits,
  ...view
}: AccountView): AccountDraft {
  return {
    name,
    note,
    time_zone: view.time_zone,
    plans: plans.toSorted().join(", "),
    max_keys: String(max_keys),
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
    time_zone: draft.time_zone.trim(),
    plans: plansOf(draft),
    max_keys: Number(draft.max_keys),
    limits: hasLimits
      ? { requests_per_minute: Number(requests), tokens_per_minute: Number(tokens) }
      : null,
  };
}

function plansOf({ plans }: AccountDraft): string[] {
  return plans === "" ? [] : plans.split(", ");
}

export function AccountFields({
  plans,
  draft,
  set,
  bind,
}: Pick<Choices, "plans"> & {
  readonly draft: AccountDraft;
  readonly set: (changed: Partial<AccountDraft>) => void;
  readonly bind: Bind<AccountDraft>;
}) {
  const configured = plans.map(({ name }) => name);
  const chosen = plansOf(draft);
  const choose = (plan: string, isChosen: boolean): void => {
    const next = isChosen ? [...chosen, plan] : chosen.filter((each) => each !== plan);
    set({ plans: next.toSorted().join(", ") });
  };
  const hasLimits = draft.requests !== "" || draft.tokens !== "";
  const limit = { type: "number", min: 1, isRequired: hasLimits } as const;
  const labels = accountLabels;
  return (
    <>
      <Field {...bind("name")} label={labels.name} isRequired hasFocus />
      <fieldset className="fieldset stack close">
        <legend className="label">{labels.plans}</legend>
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
        <span className="muted small">
          Its account holders can create keys on these. Without one, they can create none.
        </span>
      </fieldset>
      <Field {...bind("max_keys")} label={labels.max_keys} type="number" min={0} isRequired />
      <Field {...bind("requests")} {...limit} label={labels.requests} />
      <Field
        {...bind("tokens")}
        {...limit}
        label={labels.tokens}
        name="limits"
        hint="In addition to the limits of each key. Leave both empty for none."
      />
      <Field
        {...bind("time_zone")}
        label={labels.time_zone}
        isRequired
        hint="An IANA name, such as Europe/Berlin."
      />
      <Field {...bind("note")} label={labels.note} rows={2} />
    </>
  );
}
