import type { ApplicationView, Choices } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Ask, Dialog, useClose } from "../../parts/dialog.tsx";
import { Empty, ErrorNote } from "../../parts/error-note.tsx";
import { Field, namedOptions, optionsOf, Select } from "../../parts/field.tsx";
import { ChangeDialog, Form, Offered, useDraft } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useMayChange, useRole, useSeesAll } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";

/** The programs that keys are issued to. */
export function Applications() {
  const [url] = useUrl({ environment: "", account: "" });
  const mayChange = useMayChange();
  const ofAll = useSeesAll();
  const list = useList("/applications", { environment: url.environment, account_id: url.account });
  const columns: readonly Column<ApplicationView>[] = [
    ["Application", ({ name }) => name],
    ["Account", ({ account }) => account],
    ["Environment", ({ environment }) => environment],
    ["Created", ({ created_at: at }) => <Time at={at} />, "wide"],
    [
      "Status",
      ({ disabled_at: at }) =>
        at === null ? <Badge tone="ok">active</Badge> : <Badge tone="warn">disabled</Badge>,
    ],
    [
      "",
      (view) => (
        <span className="row">
          <ButtonLink look="quiet" to="/keys" own={{ application: view.id }}>
            Keys
          </ButtonLink>
          {mayChange && (
            <Ask text="Change..." label={`Change ${view.name}`} look="quiet">
              <ChangeApplication view={view} />
            </Ask>
          )}
        </span>
      ),
    ],
  ];
  return (
    <>
      <div className="row">
        {mayChange && (
          <Ask text="Create application">
            <Offered title={creation} of={["accounts", "environments"]}>
              {(choices) => <CreateApplication choices={choices} />}
            </Offered>
          </Ask>
        )}
        <Chip param="account" name="Account" text={list.query.data?.[0]?.account} />
        <Chip param="environment" name="Environment" />
      </div>
      <Listing
        list={list}
        caption="Applications"
        columns={columns.filter(([title]) => ofAll || title !== "Account")}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence="There are no applications here yet."
            command="sluice applications create NAME --account ACCOUNT --environment ENVIRONMENT"
          />
        }
      />
    </>
  );
}

const creation = "Create an application";

export type Owners = Pick<Choices, "accounts" | "environments">;

/** What is filtered for is likely what a new one belongs to. */
export function useNewApplication({ accounts, environments }: Owners) {
  const [{ account, environment }] = useUrl({ account: "", environment: "" });
  return useDraft({
    account_id: account || (accounts[0]?.id ?? ""),
    environment: environment || (environments[0]?.name ?? ""),
    name: "",
  });
}

function CreateApplication({ choices }: { readonly choices: Owners }) {
  const { draft, bind } = useNewApplication(choices);
  return (
    <ChangeDialog
      title={creation}
      submit="Create application"
      change="POST /applications"
      body={draft}
    >
      <ApplicationFields choices={choices} bind={bind} />
    </ChangeDialog>
  );
}

interface FieldsProps {
  readonly choices: Owners;
  readonly bind: ReturnType<typeof useNewApplication>["bind"];
}

/** The fields of a new application; operators also choose the account. */
export function ApplicationFields({ choices: { accounts, environments }, bind }: FieldsProps) {
  const isOperator = useRole() === "operator";
  const names = environments.map(({ name }) => name);
  return (
    <>
      {isOperator && (
        <Select {...bind("account_id")} label="Account" options={namedOptions(accounts)} />
      )}
      <Select {...bind("environment")} label="Environment" options={optionsOf(names)} />
      <Field {...bind("name")} label="Application's name" isRequired />
    </>
  );
}

function ChangeApplication({ view }: { readonly view: ApplicationView }) {
  const close = useClose();
  const { draft, bind } = useDraft({ name: view.name, note: view.note });
  const change = useChange("PATCH /applications/{id}");
  const remove = useChange("DELETE /applications/{id}");
  const { id, revision } = view;
  const save = async (changed: { name?: string; note?: string; disabled?: boolean }) => {
    const answer = await change.run({ ...changed, revision }, { id });
    if (answer.ok) close();
  };
  const erase = async (): Promise<void> => {
    const answer = await remove.run(undefined, { id });
    if (answer.ok) close();
  };
  const isDisabled = view.disabled_at !== null;
  return (
    <Dialog title={`Change ${view.name}`}>
      <Form submit="Save changes" {...change} onSubmit={() => save(draft)} onCancel={close}>
        <Field {...bind("name")} label="Name" isRequired />
        <Field {...bind("note")} label="Note" rows={2} />
      </Form>
      <p className="muted">
        Disabling stops all its keys, and can be undone. Only an application without keys can be
        deleted.
      </p>
      {remove.failure !== undefined && <ErrorNote failure={remove.failure} />}
      <div className="row">
        <Button isBusy={change.isRunning} onPress={() => save({ disabled: !isDisabled })}>
          {isDisabled ? "Enable application" : "Disable application"}
        </Button>
        <Button look="danger" isBusy={remove.isRunning} onPress={erase}>
          Delete application
        </Button>
      </div>
    </Dialog>
  );
}
