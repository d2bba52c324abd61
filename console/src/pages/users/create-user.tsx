import { useRef, useState } from "react";
import type { Choices, IssuedLink, UserView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useClose } from "../../parts/dialog.tsx";
import { Checkbox, Field } from "../../parts/field.tsx";
import { FormDialog, useDraft } from "../../parts/form.tsx";
import { useUrl } from "../../url.ts";
import { accountIdOf, roleOf, UserFields } from "./user-fields.tsx";
import { linkHours } from "./user-link.tsx";

/** Creates a user, with a link by which that person chooses a password. */
export function CreateUser({
  accounts,
  onCreated,
}: Pick<Choices, "accounts"> & {
  readonly onCreated: (link: IssuedLink) => void;
}) {
  const close = useClose();
  const [url] = useUrl({ account: "" });
  const { draft, set, bind } = useDraft({
    email: "",
    name: "",
    role: "account_holder",
    account_id: url.account || (accounts[0]?.id ?? ""),
  });
  const [isInvited, setInvited] = useState(true);
  const makeUser = useChange("POST /users");
  const makeLink = useChange("POST /users/{id}/link");
  /** Stays when only its link fails. */
  const made = useRef<UserView>(undefined);
  const create = async (): Promise<void> => {
    const { email } = draft;
    if (made.current?.email !== email.trim().toLowerCase()) {
      const body = { email, name: draft.name.trim(), role: roleOf(draft) };
      const answer = await makeUser.run({ ...body, account_id: accountIdOf(draft) });
      if (!answer.ok) return;
      made.current = answer.value;
    }
    if (!isInvited) return close();
    const link = await makeLink.run({ expires_in_hours: linkHours }, { id: made.current.id });
    if (!link.ok) return;
    close();
    onCreated(link.value);
  };
  return (
    <FormDialog
      title="Create a user"
      submit="Create user"
      isRunning={makeUser.isRunning || makeLink.isRunning}
      failure={makeUser.failure ?? makeLink.failure}
      onSubmit={create}
    >
      <Field {...bind("email")} label="Email address" type="email" isRequired hasFocus />
      <UserFields accounts={accounts} draft={draft} set={set} bind={bind} />

      <Checkbox
        label={`Make a link, valid for ${linkHours} hours, with which the user chooses a password`}
        isSelected={isInvited}
        onChange={setInvited}
      />
      <p className="muted small">Without one, the user signs in by single sign-on.</p>
    </FormDialog>
  );
}
