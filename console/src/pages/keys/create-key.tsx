import type { Choices, IssuedKey, Limits } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog, useClose } from "../../parts/dialog.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { type Bind, FormDialog, Offered, useDraft } from "../../parts/form.tsx";
import { useRole } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
import { ApplicationFields, useNewApplication } from "./applications.tsx";
import { offeredPlans, PlanSelect } from "./plan-select.tsx";

const newApplication = "new";
const expiries = [
  { value: "", label: "Never" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];
const dayInSeconds = 86_400;
const title = "Create a key";
const lists = ["accounts", "applications", "environments", "plans"] as const;

interface Props {
  readonly onCreated: (issued: IssuedKey) => void;
}

/** Asks for a new key, and for a new application if it is for one. */
export function CreateKey(props: Props) {
  const [{ account }] = useUrl({ account: "" });
  return (
    <Offered title={title} of={lists} scope={{ account_id: account }}>
      {(choices) => <KeyForm choices={choices} {...props} />}
    </Offered>
  );
}

interface FormProps extends Props {
  readonly choices: Pick<Choices, (typeof lists)[number]>;
}

function KeyForm({ choices, onCreated }: FormProps) {
  const close = useClose();
  const { applications } = choices;
  const { draft, set, bind } = useDraft({
    application_id: applications[0]?.id ?? newApplication,
    plan: "",
    name: "",
    expires: "",
    requests: "",
    tokens: "",
  });
  const chosen = draft.application_id;
  const isNew = chosen === newApplication;
  const wanted = useNewApplication(choices);
  const isOperator = useRole() === "operator";
  const ownerId =
    applications.find(({ id }) => id === chosen)?.account_id ?? wanted.draft.account_id;
  const account = choices.accounts.find(({ id }) => id === ownerId);
  const plans = offeredPlans(choices.plans, account, { isOperator });
  const plan =
    plans.find((each) => each.name === draft.plan) ??
    plans.find((each) => account?.plans.includes(each.name) === true) ??
    plans[0];
  const isCustom = plan?.tokens_per_minute === null;

  const makeApplication = useChange("POST /applications");
  const makeKey = useChange("POST /keys");
  const removeApplication = useChange("DELETE /applications/{id}");

  const submit = async (): Promise<void> => {
    const made = isNew ? await makeApplication.run(wanted.draft) : undefined;
    if (made?.ok === false) return;
    const applicationId = made?.value.id ?? chosen;
    const answer = await makeKey.run({
      application_id: applicationId,
      plan: plan?.name ?? "",
      name: draft.name.trim(),
      ...(draft.expires !== "" && { expires_in_seconds: Number(draft.expires) * dayInSeconds }),
      ...(isCustom && { limits: limitsOf(draft) }),
    });
    if (answer.ok) onCreated(answer.value);
    // An application that was made for a refused key does not stay without one.
    else if (made !== undefined) await removeApplication.run(undefined, { id: applicationId });
  };
  if (plan === undefined) {
    return (
      <Dialog title={title}>
        <p>
          Account {account?.name} has no plan, so it can have no new key. An operator can allow a
          plan: on the page of the account, by "Change...".
        </p>
        <Button onPress={close} autoFocus>
          Close
        </Button>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={title}
      submit="Create key"
      isRunning={makeApplication.isRunning || makeKey.isRunning}
      failure={makeApplication.failure ?? makeKey.failure}
      onSubmit={submit}
    >
      <Select
        {...bind("application_id")}
        label="Application"
        options={[
          ...applications.map(({ id, name, environment }) => ({
            value: id,
            label: `${name} (${environment})`,
          })),
          { value: newApplication, label: "A new application..." },
        ]}
      />
      {isNew && <ApplicationFields choices={choices} bind={wanted.bind} />}
      <PlanSelect
        plans={plans}
        account={account}
        value={plan.name}
        onChange={(name) => set({ plan: name })}
      />
      {isCustom && <LimitFields bind={bind} />}
      <Field
        {...bind("name")}
        name="key"
        label="Key's name"
        hint="What you find it by, such as the machine that uses it. It may be empty."
      />
      <Select {...bind("expires")} label="Expires" options={expiries} />
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
export function LimitFields({ bind }: { readonly bind: Bind<LimitTexts> }) {
  const shared = { type: "number", min: 1, isRequired: true } as const;
  return (
    <>
      <Field {...shared} {...bind("requests")} label="Requests per minute" />
      <Field {...shared} {...bind("tokens")} label="Tokens per minute" name="limits" />
    </>
  );
}
