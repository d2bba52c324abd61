import type { Choices, KeyChange, KeyView } from "../../api/contract.ts";
import { EditDialog } from "../../parts/edit-dialog.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { type Bind, Offered } from "../../parts/form.tsx";
import { useRole } from "../../shell/role.ts";
import { LimitFields, limitsOf } from "./create-key.tsx";
import { offeredPlans, PlanSelect } from "./plan-select.tsx";

const labels = {
  name: "Name",
  note: "Note",
  plan: "Plan",
  requests: "Requests per minute",
  tokens: "Tokens per minute",
  provisioned_units: "Provisioned units",
  provisioned_pool: "Pool of the units",
  allowed_models: "Models",
  allowed_networks: "Networks",
  expires_at: "Expires",
};
/** The fields as they are typed. */
type Draft = Readonly<Record<keyof typeof labels, string>>;

interface SettingsProps {
  readonly view: KeyView;
}

const title = "Change the key";
const lists = ["accounts", "plans", "pools"] as const;

/** Changes settings. */
export function KeySettings(props: SettingsProps) {
  return (
    <Offered title={title} of={lists}>
      {(choices) => <SettingsForm choices={choices} {...props} />}
    </Offered>
  );
}

interface FormProps extends SettingsProps {
  readonly choices: Pick<Choices, (typeof lists)[number]>;
}

function SettingsForm({ choices, view }: FormProps) {
  const isOperator = useRole() === "operator";
  const account = choices.accounts.find((each) => each.id === view.account_id);
  const plans = offeredPlans(choices.plans, account, { isOperator, kept: view.plan });
  const isCustom = ({ plan }: Draft): boolean =>
    plans.find(({ name }) => name === plan)?.tokens_per_minute === null;
  return (
    <EditDialog
      title={title}
      labels={labels}
      view={view}
      draftOf={draftOf}
      bodyOf={(draft, before) => changeOf(before, draft, isCustom(draft))}
      path="/keys/{id}"
    >
      {(draft, set, bind) => (
        <>
          <Field {...bind("name")} label={labels.name} />
          <PlanSelect
            plans={plans}
            account={account}
            value={draft.plan}
            onChange={(plan) => set({ plan })}
          />
          {isCustom(draft) && isOperator && <LimitFields bind={bind} />}
          {isOperator && choices.pools.length > 0 && <Units pools={choices.pools} bind={bind} />}
          <Access bind={bind} />
          <Field {...bind("note")} label={labels.note} rows={2} />
        </>
      )}
    </EditDialog>
  );
}

interface PartProps {
  readonly bind: Bind<Draft>;
}

/** Provisioned throughput; there must be a pool to sell it from. */
function Units({ pools, bind }: PartProps & Pick<Choices, "pools">) {
  const none = { value: "", label: "none" };
  return (
    <>
      <Field
        {...bind("provisioned_units")}
        label={labels.provisioned_units}
        type="number"
        min={0}
        hint="What they guarantee is above the plan's limits. Only some plans have them."
      />
      <Select
        {...bind("provisioned_pool")}
        label={labels.provisioned_pool}
        options={[none, ...pools.map((pool) => ({ value: pool.name, label: poolText(pool) }))]}
      />
    </>
  );
}

function poolText({ name, units_left: left }: Choices["pools"][number]): string {
  return left === null ? name : `${name} (${left} units left)`;
}

/** What the key may be used for, from where, and until when. */
function Access({ bind }: PartProps) {
  return (
    <>
      <Field
        {...bind("allowed_models")}
        label={labels.allowed_models}
        rows={3}
        hint="The only aliases that it may use, one a line. Empty: all of the environment."
      />
      <Field
        {...bind("allowed_networks")}
        label={labels.allowed_networks}
        rows={3}
        hint="Addresses and blocks such as 10.0.0.0/8, one a line. Empty: any."
      />
      <Field
        {...bind("expires_at")}
        label={labels.expires_at}
        type="datetime-local"
        hint="In your time zone. Empty: never."
      />
    </>
  );
}

function draftOf(view: KeyView): Draft {
  return {
    name: view.name,
    note: view.note,
    plan: view.plan,
    requests: String(view.limits?.requests_per_minute ?? ""),
    tokens: String(view.limits?.tokens_per_minute ?? ""),
    provisioned_units: String(view.provisioned_units),
    provisioned_pool: view.provisioned_pool ?? "",
    allowed_models: view.allowed_models?.join("\n") ?? "",
    allowed_networks: view.allowed_networks?.join("\n") ?? "",
    expires_at: view.expires_at === null ? "" : localText(view.expires_at),
  };
}

/** Only what differs is sent, so that a holder does not send what only operators may set. */
function changeOf(before: Draft, draft: Draft, isCustom: boolean): Partial<KeyChange> {
  const { requests, tokens, ...fields } = draft;
  const all: Required<Pick<KeyChange, keyof typeof fields>> = {
    ...fields,
    name: fields.name.trim(),
    provisioned_units: Number(fields.provisioned_units),
    provisioned_pool: fields.provisioned_pool || null,
    allowed_models: linesOf(fields.allowed_models),
    allowed_networks: linesOf(fields.allowed_networks),
    expires_at: fields.expires_at === "" ? null : new Date(fields.expires_at).toISOString(),
  };
  const hasOtherLimits = before.requests !== requests || before.tokens !== tokens;
  const isChanged = ([name]: [string, unknown]): boolean =>
    Reflect.get(before, name) !== Reflect.get(draft, name);
  return {
    ...Object.fromEntries(Object.entries(all).filter(isChanged)),
    ...(isCustom && hasOtherLimits && { limits: limitsOf(draft) }),
  };
}

function linesOf(text: string): string[] | null {
  const lines = text.split(/[\n,]/).flatMap((line) => line.trim() || []);
  return lines.length === 0 ? null : lines;
}

/** As a field of the browser has it, in the zone of the viewer, to the minute. */
function localText(at: string): string {
  const date = new Date(at);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
