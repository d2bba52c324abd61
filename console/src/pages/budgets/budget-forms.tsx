import type { BudgetView, Choices } from "../../api/contract.ts";
import { EditDialog } from "../../parts/edit-dialog.tsx";
import { Field, namedOptions, optionsOf, Select } from "../../parts/field.tsx";
import { type Bind, ChangeDialog, Offered, useDraft } from "../../parts/form.tsx";
import { useRole } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
import { keyName } from "../keys/key-words.tsx";
import { periodOf, periods } from "./budget-words.ts";

const title = "Create a budget";
const lists = ["accounts", "applications", "keys", "models"] as const;
const modes = [
  { value: "refuse", label: "Calls are refused" },
  { value: "warn", label: "Events tell of it" },
];

const spenders = [
  { value: "all", label: "All calls together" },
  { value: "each", label: "Each end user" },
];

export function CreateBudget() {
  return (
    <Offered title={title} of={lists}>
      {(choices) => <Creation {...choices} />}
    </Offered>
  );
}

function Creation({ accounts, applications, keys, models }: Pick<Choices, (typeof lists)[number]>) {
  const [url] = useUrl({ account: "", application: "", key: "" });
  const isOperator = useRole() === "operator";
  const ofUrl = keys.find(({ id }) => id === url.key);
  const { draft, set, bind } = useDraft({
    account_id: ofUrl?.account_id ?? (url.account || (accounts[0]?.id ?? "")),
    application_id: ofUrl?.application_id ?? url.application,
    key_id: url.key,
    model: "",
    spender: "all",
    limit_usd: "",
    period: "month",
    time_zone: "",
    mode: "refuse",
    alerts: "50, 80, 100",
    note: "",
  });
  const own = applications.filter(({ account_id: id }) => id === draft.account_id);
  const ownKeys = keys.filter(
    ({ account_id: id, application_id: of }) =>
      id === draft.account_id && (draft.application_id === "" || of === draft.application_id),
  );
  const named = own.map(({ id, name, environment }) => ({ id, name: `${name} (${environment})` }));
  const namedKeys = ownKeys.map((key) => ({ id: key.id, name: keyName(key) }));
  const all = (label: string) => ({ value: "", label });
  return (
    <ChangeDialog
      title={title}
      submit="Create budget"
      change="POST /budgets"
      body={{
        account_id: draft.account_id,
        ...(draft.application_id !== "" && { application_id: draft.application_id }),
        ...(draft.key_id !== "" && { key_id: draft.key_id }),
        ...(draft.model !== "" && { model: draft.model }),
        ...(draft.time_zone !== "" && { time_zone: draft.time_zone.trim() }),
        limit_usd: draft.limit_usd.trim(),
        period: periodOf(draft.period),
        ...(draft.spender === "each" ? { each_end_user: true, note: draft.note } : othersOf(draft)),
      }}
    >
      {isOperator && (
        <Select
          {...bind("account_id")}
          label="Account"
          options={namedOptions(accounts)}
          onChange={(account) => set({ account_id: account, application_id: "", key_id: "" })}
        />
      )}
      <Select
        {...bind("application_id")}
        label="Application"
        options={[all("All"), ...namedOptions(named)]}
        onChange={(application) => set({ application_id: application, key_id: "" })}
      />
      <Select {...bind("key_id")} label="Key" options={[all("All"), ...namedOptions(namedKeys)]} />
      <Select
        {...bind("model")}
        label="Model"
        options={optionsOf([...new Set(models.map(({ alias }) => alias))], "All")}
      />
      <Select
        {...bind("spender")}
        label="Who may spend it"
        options={spenders}
        hint="One of each end user always refuses, has no alerts, and ends: a day, a week or a month."
      />
      <LimitField bind={bind} />
      <Select
        {...bind("period")}
        label="Period"
        options={periods}
        hint="It never changes. Calls of the current one count, also those of before."
      />
      <Field
        {...bind("time_zone")}
        label="Time zone"
        placeholder={accounts.find(({ id }) => id === draft.account_id)?.time_zone ?? "UTC"}
        hint="In which periods begin, such as Europe/Berlin. Empty: that of the account."
      />
      <OtherFields bind={bind} isForEach={draft.spender === "each"} />
    </ChangeDialog>
  );
}

function LimitField({ bind }: { readonly bind: Bind<{ readonly limit_usd: string }> }) {
  return (
    <Field {...bind("limit_usd")} label="Limit in USD" isRequired placeholder="5.00" hasFocus />
  );
}

interface Others {
  readonly mode: string;
  readonly alerts: string;
  readonly note: string;
}

function OtherFields({
  bind,
  isForEach,
}: {
  readonly bind: Bind<Others>;
  readonly isForEach: boolean;
}) {
  return (
    <>
      {!isForEach && (
        <>
          <Select
            {...bind("mode")}
            label="When it is spent"
            options={modes}
            hint="A key whose calls may be refused cannot use targets without a price."
          />
          <Field
            {...bind("alerts")}
            label="Tell at these percentages"
            hint="An event tells, once in a period. Empty: none."
          />
        </>
      )}
      <Field {...bind("note")} label="Note" rows={2} />
    </>
  );
}

function othersOf({ mode, alerts, note }: Others) {
  const percents = alerts.split(/[\s,%]+/).filter((each) => each !== "");
  return {
    mode: mode === "warn" ? ("warn" as const) : ("refuse" as const),
    alerts: percents.map(Number),
    note,
  };
}

const labels = {
  limit_usd: "Limit in USD",
  mode: "When it is spent",
  alerts: "Tell at these percentages",
  note: "Note",
};

/** Raises, lowers or changes it; the rest of a budget never changes. */
export function ChangeBudget({ budget }: { readonly budget: BudgetView }) {
  return (
    <EditDialog
      title="Change the budget"
      labels={labels}
      view={budget}
      draftOf={({ limit_usd, mode, alerts, note }: BudgetView) => ({
        limit_usd: limit_usd.replace(/(\.\d\d)0+$/, "$1"),
        mode,
        alerts: alerts.join(", "),
        note,
      })}
      bodyOf={(draft) => ({
        limit_usd: draft.limit_usd.trim(),
        ...(budget.each_end_user ? { note: draft.note } : othersOf(draft)),
      })}
      path="/budgets/{id}"
    >
      {(_draft, _set, bind) => (
        <>
          <LimitField bind={bind} />
          <OtherFields bind={bind} isForEach={budget.each_end_user} />
        </>
      )}
    </EditDialog>
  );
}
