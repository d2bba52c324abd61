import { useEffect, useState } from "react";
import type { ApplicationView, IssuedKey, Limits } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useList, useRead } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { useRole, useUser } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
import { PlanSelect, useOfferedPlans } from "./plan-select.tsx";

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
  const user = useUser();
  const ownerId =
    known.find(({ id }) => id === chosen)?.account_id ?? user?.account_id ?? wanted.account;
  const offered = useOfferedPlans(ownerId);
  const { account, plans = [] } = offered;
  const chosenPlan =
    plans.find((each) => each.name === plan) ??
    plans.find((each) => account?.plans.includes(each.name) === true) ??
    plans[0];
  const isCustom = chosenPlan?.tokens_per_minute === null;

  const makeApplication = useChange("POST /applications");
  const makeKey = useChange("POST /keys");
  const removeApplication = useChange("DELETE /applications/{id}");
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
    }
    const answer = await makeKey.run({
      application_id: applicationId,
      plan: chosenPlan?.name ?? "",
      name: name.trim(),
      ...(expiry !== "" && { expires_in_seconds: Number(expiry) * dayInSeconds }),
      ...(isCustom && { limits: limitsOf(limits) }),
    });
    // An application that was made for a refused key does not stay without one.
    if (!answer.ok && chosen === newApplication) {
      await removeApplication.run(undefined, { id: applicationId });
    }
    cache.refresh("/applications");
    if (answer.ok) onCreated(answer.value);
  };
  if (offered.plans?.length === 0) {
    return <NoPlan account={account?.name ?? ""} onClose={onClose} />;
  }
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
      <PlanSelect offered={offered} value={chosenPlan?.name ?? ""} onChange={setPlan} />
      {isCustom && <LimitFields limits={limits} onChange={setLimits} />}
      <Field
        label="Key's name"
        value={name}
        onChange={setName}
        hint="What you find it by, such as the machine that uses it. It may be empty."
      />
      <Select label="Expires" value={expiry} onChange={setExpiry} options={expiries} />
    </FormDialog>
  );
}

function NoPlan({ account, onClose }: { readonly account: string; readonly onClose: () => void }) {
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <p>
        Account {account} has no plan, so it can have no new key. An operator can allow a plan: on
        the page of the account, by "Change...".
      </p>
      <div>
        <Button onPress={onClose} autoFocus>
          Close
        </Button>
      </div>
    </Dialog>
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
        label="Application's name"
        name="name"
        isRequired
        value={wanted.name}
        onChange={(name) => onChange({ ...wanted, name })}
      />
    </>
  );
}
