import { useState } from "react";
import type { IssuedLink, UserView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";

export const linkHours = 24;
const lifetimes = [
  { value: "1", label: "An hour" },
  { value: String(linkHours), label: "24 hours" },
  { value: "168", label: "7 days" },
];

/** For an invitation, or a password that was forgotten. */
export function UserLink({
  user,
  onClose,
  onMade,
}: {
  readonly user: UserView;
  readonly onClose: () => void;
  readonly onMade: (link: IssuedLink) => void;
}) {
  const [hours, setHours] = useState(String(linkHours));
  const change = useChange("POST /users/{id}/link");
  const make = async (): Promise<void> => {
    const answer = await change.run({ expires_in_hours: Number(hours) }, { id: user.id });
    if (answer.ok) onMade(answer.value);
  };
  return (
    <FormDialog
      title={`A link for ${user.email}`}
      submit="Make link"
      {...change}
      onSubmit={make}
      onClose={onClose}
    >
      <p>
        The person who opens it first chooses the user's password and is signed in. An earlier link
        ends now. The user's password and sessions end when the link is used.
      </p>
      <Select
        label="It works for"
        name="expires_in_hours"
        value={hours}
        options={lifetimes}
        onChange={setHours}
      />
    </FormDialog>
  );
}
