import { useRef, useState } from "react";
import type { IssuedLink, UserView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache } from "../../api/use-read.ts";
import { Checkbox, Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { useUrl } from "../../url.ts";
import { accountIdOf, roleOf, UserFields } from "./user-fields.tsx";
import { linkHours } from "./user-link.tsx";

/** Creates a user, with a link by which that person chooses a password. */
export function CreateUser({
  onClose,
  onCreated,
}: {
  readonly onClose: () => void;
  readonly onCreated: (link: IssuedLink | undefined) => void;
}) {
  const [url] = useUrl({ account: "" });
  const [email, setEmail] = useState("");
  const [draft, setDraft] = useState({ name: "", role: "account_holder", account: url.account });
  const [isInvited, setInvited] = useState(true);
  const makeUser = useChange("POST /users");
  const makeLink = useChange("POST /users/{id}/link");
  const cache = useCache();
  /** Stays when only its link fails. */
  const made = useRef<UserView>(undefined);
  const create = async (): Promise<void> => {
    if (made.current?.email !== email.trim().toLowerCase()) {
      const body = { email, name: draft.name.trim(), role: roleOf(draft) };
      const answer = await makeUser.run({ ...body, account_id: accountIdOf(draft) });
      if (!answer.ok) return;
      made.current = answer.value;
      cache.refresh("/users");
    }
    if (!isInvited) return onCreated(undefined);
    const link = await makeLink.run({ expires_in_hours: linkHours }, { id: made.current.id });
    if (link.ok) onCreated(link.value);
  };
  return (
    <FormDialog
      title="Create a user"
      submit="Create user"
      isRunning={makeUser.isRunning || makeLink.isRunning}
      failure={makeUser.failure ?? makeLink.failure}
      onSubmit={create}
      onClose={onClose}
    >
      <Field
        label="Email address"
        name="email"
        type="email"
        isRequired
        hasFocus
        value={email}
        onChange={setEmail}
      />
      <UserFields draft={draft} onChange={(changed) => setDraft({ ...draft, ...changed })} />
      <Checkbox
        label={`Make a link, valid for ${linkHours} hours, with which the user chooses a password`}
        isSelected={isInvited}
        onChange={setInvited}
      />
      <p className="muted small">Without one, the user signs in by single sign-on.</p>
    </FormDialog>
  );
}
