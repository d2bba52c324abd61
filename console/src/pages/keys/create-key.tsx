import { useEffect, useState } from "react";
import type { ApplicationView, IssuedKey, Limits } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useList, useRead } from "../../api/use-read.ts";
import { Field, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { useRole } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";

const newApplication = "new";
const expiries = [
  { value: "", label: "Never" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];
const dayInSeconds = 86_400;

/** Asks for a new key, and for a new application if it is for one. */
export function CreateKey({
  onClose,
  onCreated,
}: {
  readonly onClose: () => void;
  readonly onCreated: (issued: IssuedKey) => void;
}) {
  const [url] = useUrl({ account: "", environment: "" });
  const applications = useList("/applications", { limit: 500, account_id: url.account });
  const plans = useRead("/plans").data?.data ?? [];
  const [application, setApplication] = useState<string>();
  const [plan, setPlan] = useState<string>();
  const [name, setName] = useState("");
  const [expiry, setExpiry] = useState("");
  const [limits, setLimits] = useState({ requests: "", tokens: "" });
  const [wanted, setWanted] = useState<NewApplication>({
    account: url.account,
    environment: url.environment,
    name: "",
  });
  const known = applications.query.data ?? [];
  const chosen = application ?? known[0]?.id ?? newApplication;
  const chosenPlan = plans.find((each) => each.name === plan) ?? plans[0];
  const isCustom = chosenPlan?.tokens_per_minute === null;

  const makeApplication = useChange("POST /applications");
  const makeKey = useChange("POST /keys");
  const cache = useCache();

  const submit = async (): Promise<void> => {
    let applicationId = chosen;
    if (chosen === newApplication) {
      const made = await makeApplication.run({
        ...(wanted.account !== "" && { account_id: wanted.account }),
        environment: wanted.environment,
        name: wanted.name,
      });
      if (!made.ok) return;
      applicationId = made.value.id;
      setApplication(applicationId);
      cache.refresh("/applications");
    }
    const answer = await makeKey.run({
      application_id: applicationId,
      plan: chosenPlan?.name ?? "",
      name: name.trim(),
      ...(expiry !== "" && { expires_in_seconds: Number(expiry) * dayInSeconds }),
      ...(isCustom && { limits: limitsOf(limits) }),
    });
    if (answer.ok) onCreated(answer.value);
  };
  return (
    <FormDialog
      title="Create a key"
      submit="Create key"
      isRunning={makeApplication.isRunning || makeKey.isRunning}
      failure={makeApplication.failure ?? makeKey.failure}
      onSubmit={submit}
      onClose={onClose}
    >
      <Select
        label="Application"
        name="application_id"
        value={chosen}
        onChange={setApplication}
        options={[
          ...known.map((each) => ({ value: each.id, label: labelOf(each) })),
          { value: newApplication, label: "A new application..." },
        ]}
      />
      {chosen === newApplication && <ApplicationFields wanted={wanted} onChange={setWanted} />}
      <Select
        label="Plan"
        name="plan"
        value={chosenPlan?.name ?? ""}
        onChange={setPlan}
        hint={chosenPlan && planHint(chosenPlan)}
        options={plans.map((each) => ({ value: each.name, label: each.name }))}
      />
      {isCustom && <LimitFields limits={limits} onChange={setLimits} />}
      <Field
        label="Name"
        value={name}
        onChange={setName}
        hint="What you find it by, such as the machine that uses it. It may be empty."
      />
      <Select label="Expires" value={expiry} onChange={setExpiry} options={expiries} />
    </FormDialog>
  );
}

export interface LimitTexts {
  readonly requests: string;
  readonly tokens: string;
}

export function limitsOf({ requests, tokens }: LimitTexts): Limits {
  return { requests_per_minute: Number(requests), tokens_per_minute: Number(tokens) };
}

/** Of a key on a plan without limits of its own. */
export function LimitFields({
  limits,
  onChange,
}: {
  readonly limits: LimitTexts;
  readonly onChange: (limits: LimitTexts) => void;
}) {
  const shared = { type: "number", min: 1, isRequired: true } as const;
  return (
    <>
      <Field
        {...shared}
        label="Requests per minute"
        value={limits.requests}
        onChange={(requests) => onChange({ ...limits, requests })}
      />
      <Field
        {...shared}
        label="Tokens per minute"
        name="limits"
        value={limits.tokens}
        onChange={(tokens) => onChange({ ...limits, tokens })}
      />
    </>
  );
}

function labelOf({ name, environment }: ApplicationView): string {
  return `${name} (${environment})`;
}

interface PlanLimits {
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
}

function planHint({ requests_per_minute: requests, tokens_per_minute: tokens }: PlanLimits) {
  if (requests === null || tokens === null) return "Each key has its own limits.";
  return `${exactText(requests)} requests and ${exactText(tokens)} tokens in any minute.`;
}

interface NewApplication {
  readonly account: string;
  readonly environment: string;
  readonly name: string;
}

/** The fields of a new application; operators also choose the account. */
export function ApplicationFields({
  wanted,
  onChange,
}: {
  readonly wanted: NewApplication;
  readonly onChange: (wanted: NewApplication) => void;
}) {
  const isOperator = useRole() === "operator";
  const accounts = useList("/accounts", { limit: 500 }, { isOff: !isOperator }).query.data ?? [];
  const environments = useRead("/environments").data?.data ?? [];
  const first = { account: accounts[0]?.id ?? "", environment: environments[0]?.name ?? "" };
  useEffect(() => {
    const account = wanted.account === "" ? first.account : wanted.account;
    const environment = wanted.environment === "" ? first.environment : wanted.environment;
    if (account !== wanted.account || environment !== wanted.environment) {
      onChange({ ...wanted, account, environment });
    }
  }, [first.account, first.environment, wanted, onChange]);
  return (
    <>
      {isOperator && (
        <Select
          label="Account"
          name="account_id"
          value={wanted.account}
          onChange={(account) => onChange({ ...wanted, account })}
          options={accounts.map(({ id, name }) => ({ value: id, label: name }))}
        />
      )}
      <Select
        label="Environment"
        name="environment"
        value={wanted.environment}
        onChange={(environment) => onChange({ ...wanted, environment })}
        options={environments.map(({ name }) => ({ value: name, label: name }))}
      />
      <Field
        label="Name of the application"
        name="name"
        isRequired
        value={wanted.name}
        onChange={(name) => onChange({ ...wanted, name })}
      />
    </>
  );
}
