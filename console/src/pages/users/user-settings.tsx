import { useState } from "react";
import { read } from "../../api/client.ts";
import type { UserView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache } from "../../api/use-read.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Conflict } from "../../parts/conflict.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Form } from "../../parts/form.tsx";
import { useHref } from "../../url.ts";
import { accountIdOf, roleOf, type UserDraft, UserFields, userLabels } from "./user-fields.tsx";

interface Props {
  readonly user: UserView;
  readonly onClose: () => void;
}

/** Changes a user. If somebody else has meanwhile, it shows both versions and loses nothing. */
export function UserSettings({ user: first, onClose }: Props) {
  const [base, setBase] = useState(first);
  const [theirs, setTheirs] = useState<UserView>();
  const [draft, setDraft] = useState(() => draftOf(first));
  const [isDeleting, setDeleting] = useState(false);
  const { run, isRunning, failure, clear } = useChange("PATCH /users/{id}");
  const cache = useCache();
  const href = useHref();
  const { id } = first;
  const send = async (changed: { name?: string; disabled?: boolean }): Promise<void> => {
    const answer = await run({ ...changed, revision: base.revision }, { id });
    if (answer.ok) {
      cache.refresh("/users");
      return onClose();
    }
    if (answer.failure.code !== "revision_conflict") return;
    const newer = await read("/users/{id}", { id });
    if (!newer.ok) return;
    cache.refresh("/users");
    setTheirs(newer.value);
  };
  if (theirs !== undefined) {
    return (
      <Conflict
        labels={userLabels}
        mine={draft}
        base={draftOf(base)}
        theirs={draftOf(theirs)}
        onClose={onClose}
        onMerged={(merged) => {
          setDraft(merged);
          setBase(theirs);
          setTheirs(undefined);
          clear();
        }}
      />
    );
  }
  if (isDeleting) return <DeleteUser user={first} onClose={onClose} />;
  const isDisabled = base.disabled_at !== null;
  return (
    <Dialog title={`Change ${first.email}`} onClose={onClose}>
      <Form
        submit="Save changes"
        isRunning={isRunning}
        failure={failure}
        onSubmit={() => send(changeOf(draft))}
        onCancel={onClose}
      >
        <UserFields draft={draft} onChange={setDraft} />
        <p className="muted small">Another role or account ends the user's sessions.</p>
      </Form>
      <p className="muted">
        Disabling ends the user's sessions, tokens and link at once. It can be undone, but tokens
        stay revoked.
      </p>
      <div className="row">
        <Button isBusy={isRunning} onPress={() => send({ disabled: !isDisabled })}>
          {isDisabled ? "Enable user" : "Disable user"}
        </Button>
        <Button onPress={() => setDeleting(true)}>Delete user...</Button>
        <ButtonLink look="quiet" href={href("/audit", { actor: id })}>
          What the user changed
        </ButtonLink>
      </div>
    </Dialog>
  );
}

function draftOf({ name, role, account_id }: UserView): UserDraft {
  return { name, role, account: account_id ?? "" };
}

function changeOf(draft: UserDraft) {
  return { name: draft.name.trim(), role: roleOf(draft), account_id: accountIdOf(draft) };
}

function DeleteUser({ user, onClose }: Props) {
  const { run, isRunning, failure } = useChange("DELETE /users/{id}");
  const cache = useCache();
  const remove = async (): Promise<void> => {
    const answer = await run(undefined, { id: user.id });
    if (!answer.ok) return;
    cache.refresh("/users");
    onClose();
  };
  return (
    <Dialog title={`Delete ${user.email}`} isAlert onClose={onClose}>
      <p>
        The user's sessions and tokens end, and the user cannot be restored. What the user changed
        stays in the audit.
      </p>
      {failure !== undefined && <ErrorNote failure={failure} />}
      <div className="row">
        <Button look="danger" isBusy={isRunning} onPress={remove}>
          Delete user
        </Button>
        <Button autoFocus onPress={onClose}>
          Cancel
        </Button>
      </div>
    </Dialog>
  );
}
