import { useState } from "react";
import { read } from "../../api/client.ts";
import type { AccountView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache } from "../../api/use-read.ts";
import { Conflict } from "../../parts/conflict.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Form } from "../../parts/form.tsx";
import { accountDraft, AccountFields, accountLabels, newAccountOf } from "./account-fields.tsx";

/** Changes settings. If somebody else has meanwhile, it shows both versions and loses nothing. */
export function AccountSettings({
  view: first,
  onClose,
}: {
  readonly view: AccountView;
  readonly onClose: () => void;
}) {
  const [base, setBase] = useState(first);
  const [theirs, setTheirs] = useState<AccountView>();
  const [draft, setDraft] = useState(() => accountDraft(first));
  const { run, isRunning, failure, clear } = useChange("PATCH /accounts/{id}");
  const cache = useCache();
  const { id } = first;
  const write = (view: AccountView): void => {
    cache.write("/accounts/{id}", { id }, view);
    cache.refresh("/accounts");
  };
  const save = async (): Promise<void> => {
    const answer = await run({ ...newAccountOf(draft), revision: base.revision }, { id });
    if (answer.ok) {
      write(answer.value);
      return onClose();
    }
    if (answer.failure.code !== "revision_conflict") return;
    const newer = await read("/accounts/{id}", { id });
    if (!newer.ok) return;
    write(newer.value);
    setTheirs(newer.value);
  };
  if (theirs !== undefined) {
    return (
      <Conflict
        labels={accountLabels}
        mine={draft}
        base={accountDraft(base)}
        theirs={accountDraft(theirs)}
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
  return (
    <Dialog title="Change the account" onClose={onClose}>
      <Form
        submit="Save changes"
        isRunning={isRunning}
        failure={failure}
        onSubmit={save}
        onCancel={onClose}
      >
        <AccountFields draft={draft} onChange={setDraft} />
      </Form>
    </Dialog>
  );
}
