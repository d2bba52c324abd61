import { useState } from "react";
import type { ApplicationView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Empty, ErrorNote } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { Form, FormDialog } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useMayChange, useSeesAll } from "../../shell/role.ts";
import { useHref, useUrl } from "../../url.ts";
import { ApplicationFields } from "./create-key.tsx";

/** The programs that keys are issued to. */
export function Applications() {
  const [url, change] = useUrl({ environment: "", account: "" });
  const href = useHref();
  const mayChange = useMayChange();
  const ofAll = useSeesAll();
  const [isCreating, setCreating] = useState(false);
  const [changing, setChanging] = useState<ApplicationView>();
  const list = useList("/applications", { environment: url.environment, account_id: url.account });
  const columns: readonly Column<ApplicationView>[] = [
    { title: "Application", cell: ({ name }) => name },
    ...(ofAll ? [{ title: "Account", cell: ({ account }: ApplicationView) => account }] : []),
    { title: "Environment", cell: ({ environment }) => environment },
    { title: "Created", cell: ({ created_at: at }) => <Time at={at} />, isWideOnly: true },
    { title: "Status", cell: (view) => <ApplicationStatus view={view} /> },
    {
      title: "",
      cell: (view) => (
        <span className="row">
          <ButtonLink look="quiet" href={href("/keys", { application: view.id })}>
            Keys
          </ButtonLink>
          {mayChange && (
            <Button
              look="quiet"
              aria-label={`Change ${view.name}`}
              onPress={() => setChanging(view)}
            >
              Change...
            </Button>
          )}
        </span>
      ),
    },
  ];
  const create = mayChange && <Button onPress={() => setCreating(true)}>Create application</Button>;
  return (
    <>
      <div className="row">
        {create}
        <Chip
          name="Account"
          value={url.account}
          text={list.query.data?.[0]?.account}
          onRemove={() => change({ account: "" })}
        />
        <Chip
          name="Environment"
          value={url.environment}
          onRemove={() => change({ environment: "" })}
        />
      </div>
      <Listing
        list={list}
        caption="Applications"
        columns={columns}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence="There are no applications here yet."
            command="sluice applications create NAME --account ACCOUNT --environment ENVIRONMENT"
          />
        }
      />
      {isCreating && <CreateApplication onClose={() => setCreating(false)} />}
      {changing !== undefined && (
        <ChangeApplication view={changing} onClose={() => setChanging(undefined)} />
      )}
    </>
  );
}

function ApplicationStatus({ view }: { readonly view: ApplicationView }) {
  return view.disabled_at === null ? (
    <Badge tone="ok">active</Badge>
  ) : (
    <Badge tone="warn">disabled</Badge>
  );
}

function CreateApplication({ onClose }: { readonly onClose: () => void }) {
  const [url] = useUrl({ environment: "", account: "" });
  const [wanted, setWanted] = useState({ ...url, name: "" });
  const change = useChange("POST /applications");
  const cache = useCache();
  const create = async (): Promise<void> => {
    const { account, environment, name } = wanted;
    const answer = await change.run({
      ...(account !== "" && { account_id: account }),
      environment,
      name,
    });
    if (!answer.ok) return;
    cache.refresh("/applications");
    onClose();
  };
  return (
    <FormDialog
      title="Create an application"
      submit="Create application"
      {...change}
      onSubmit={create}
      onClose={onClose}
    >
      <ApplicationFields wanted={wanted} onChange={setWanted} />
    </FormDialog>
  );
}

interface ChangeProps {
  readonly view: ApplicationView;
  readonly onClose: () => void;
}

function ChangeApplication({ view, onClose }: ChangeProps) {
  const [name, setName] = useState(view.name);
  const [note, setNote] = useState(view.note);
  const cache = useCache();
  const { run, isRunning, failure } = useChange("PATCH /applications/{id}");
  const remove = useChange("DELETE /applications/{id}");
  const finish = (): void => {
    cache.refresh("/applications");
    cache.refresh("/keys");
    onClose();
  };
  const save = async (changed: { name?: string; note?: string; disabled?: boolean }) => {
    const answer = await run({ ...changed, revision: view.revision }, { id: view.id });
    if (answer.ok) finish();
  };
  const erase = async (): Promise<void> => {
    const answer = await remove.run(undefined, { id: view.id });
    if (answer.ok) finish();
  };
  const isDisabled = view.disabled_at !== null;
  return (
    <Dialog title={`Change ${view.name}`} onClose={onClose}>
      <Form
        submit="Save changes"
        isRunning={isRunning}
        failure={failure}
        onSubmit={() => save({ name, note })}
        onCancel={onClose}
      >
        <Field label="Name" name="name" isRequired value={name} onChange={setName} />
        <Field label="Note" name="note" rows={2} value={note} onChange={setNote} />
      </Form>
      <p className="muted">
        Disabling stops all its keys, and can be undone. Only an application without keys can be
        deleted.
      </p>
      {remove.failure !== undefined && <ErrorNote failure={remove.failure} />}
      <div className="row">
        <Button isBusy={isRunning} onPress={() => save({ disabled: !isDisabled })}>
          {isDisabled ? "Enable application" : "Disable application"}
        </Button>
        <Button look="danger" isBusy={remove.isRunning} onPress={erase}>
          Delete application
        </Button>
      </div>
    </Dialog>
  );
}
