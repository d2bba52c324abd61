import type { Choices, UserView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Ask, useClose } from "../../parts/dialog.tsx";
import { EditDialog } from "../../parts/edit-dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { ChangeDialog } from "../../parts/form.tsx";
import { accountIdOf, roleOf, type UserDraft, UserFields, userLabels } from "./user-fields.tsx";

/** Changes, disables, enables or deletes a user. */
export function UserSettings({
  accounts,
  user,
}: Pick<Choices, "accounts"> & { readonly user: UserView }) {
  const close = useClose();
  const { id, revision } = user;
  const { run, isRunning, failure } = useChange("PATCH /users/{id}");
  const isDisabled = user.disabled_at !== null;
  const toggle = async (): Promise<void> => {
    const answer = await run({ revision, disabled: !isDisabled }, { id });
    if (answer.ok) close();
  };
  return (
    <EditDialog
      title={`Change ${user.email}`}
      labels={userLabels}
      view={user}
      draftOf={draftOf}
      bodyOf={changeOf}
      path="/users/{id}"
      more={
        <>
          <p className="muted">
            Disabling ends the user's sessions, tokens and link at once. It can be undone, but
            tokens stay revoked.
          </p>
          {failure !== undefined && <ErrorNote failure={failure} />}
          <div className="row">
            <Button isBusy={isRunning} onPress={toggle}>
              {isDisabled ? "Enable user" : "Disable user"}
            </Button>
            <Ask text="Delete user...">
              <ChangeDialog
                title={`Delete ${user.email}`}
                submit="Delete user"
                isDanger
                change="DELETE /users/{id}"
                body={undefined}
                parameters={{ id }}
                onDone={close}
              >
                <p>
                  The user's sessions and tokens end, and the user cannot be restored. What the user
                  changed stays in the audit.
                </p>
              </ChangeDialog>
            </Ask>
            <ButtonLink look="quiet" to="/audit" own={{ actor: id }}>
              What the user changed
            </ButtonLink>
          </div>
        </>
      }
    >
      {(draft, set, bind) => (
        <>
          <UserFields accounts={accounts} draft={draft} set={set} bind={bind} />
          <p className="muted small">Another role or account ends the user's sessions.</p>
        </>
      )}
    </EditDialog>
  );
}

function draftOf({ name, role, account_id }: UserView): UserDraft {
  return { name, role, account_id: account_id ?? "" };
}

function changeOf(draft: UserDraft) {
  return { name: draft.name.trim(), role: roleOf(draft), account_id: accountIdOf(draft) };
}
