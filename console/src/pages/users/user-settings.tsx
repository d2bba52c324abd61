import { useState } from "react";
import { read } from "../../api/client.ts";
import type { UserView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache } from "../../api/use-read.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { EditDialog } from "../../parts/edit-dialog.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { useHref } from "../../url.ts";
import { accountIdOf, roleOf, type UserDraft, UserFields, userLabels } from "./user-fields.tsx";

interface Props {
  readonly user: UserView;
  readonly onClose: () => void;
}

/** Changes, disables, enables or deletes a user. */
export function UserSettings({ user, onClose }: Props) {
  const { id, revision } = user;
  const [isDeleting, setDeleting] = useState(false);
  const change = useChange("PATCH /users/{id}");
  const cache = useCache();
  const href = useHref();
  const isDisabled = user.disabled_at !== null;
  const toggle = async (): Promise<void> => {
    const answer = await change.run({ revision, disabled: !isDisabled }, { id });
    cache.refresh("/users");
    if (answer.ok) onClose();
  };
  if (isDeleting) return <DeleteUser user={user} onClose={onClose} />;
  return (
    <EditDialog
      title={`Change ${user.email}`}
      labels={userLabels}
      view={user}
      draftOf={draftOf}
      bodyOf={changeOf}
      change={change}
      id={id}
      read={() => read("/users/{id}", { id })}
      onRead={() => cache.refresh("/users")}
      onClose={onClose}
      more={
        <>
          <p className="muted">
            Disabling ends the user's sessions, tokens and link at once. It can be undone, but
            tokens stay revoked.
          </p>
          <div className="row">
            <Button isBusy={change.isRunning} onPress={toggle}>
              {isDisabled ? "Enable user" : "Disable user"}
            </Button>
            <Button onPress={() => setDeleting(true)}>Delete user...</Button>
            <ButtonLink look="quiet" href={href("/audit", { actor: id })}>
              What the user changed
            </ButtonLink>
          </div>
        </>
      }
    >
      {(draft, set) => (
        <>
          <UserFields draft={draft} onChange={set} />
          <p className="muted small">Another role or account ends the user's sessions.</p>
        </>
      )}
    </EditDialog>
  );
}

function draftOf({ name, role, account_id }: UserView): UserDraft {
  return { name, role, account: account_id ?? "" };
}

function changeOf(draft: UserDraft) {
  return { name: draft.name.trim(), role: roleOf(draft), account_id: accountIdOf(draft) };
}

function DeleteUser({ user, onClose }: Props) {
  const change = useChange("DELETE /users/{id}");
  const cache = useCache();
  const remove = async (): Promise<void> => {
    const answer = await change.run(undefined, { id: user.id });
    if (!answer.ok) return;
    cache.refresh("/users");
    onClose();
  };
  return (
    <FormDialog
      title={`Delete ${user.email}`}
      submit="Delete user"
      isDanger
      {...change}
      onSubmit={remove}
      onClose={onClose}
    >
      <p>
        The user's sessions and tokens end, and the user cannot be restored. What the user changed
        stays in the audit.
      </p>
    </FormDialog>
  );
}
