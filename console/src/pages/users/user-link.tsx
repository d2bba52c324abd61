import type { IssuedLink, UserView } from "../../api/contract.ts";
import { Select } from "../../parts/field.tsx";
import { ChangeDialog, useDraft } from "../../parts/form.tsx";

export const linkHours = 24;
const lifetimes = [
  { value: "1", label: "An hour" },
  { value: String(linkHours), label: "24 hours" },
  { value: "168", label: "7 days" },
];

/** For an invitation, or a password that was forgotten. */
export function UserLink({
  user,
  onMade,
}: {
  readonly user: UserView;
  readonly onMade: (link: IssuedLink) => void;
}) {
  const { draft, bind } = useDraft({ expires_in_hours: String(linkHours) });
  return (
    <ChangeDialog
      title={`A link for ${user.email}`}
      submit="Make link"
      change="POST /users/{id}/link"
      body={{ expires_in_hours: Number(draft.expires_in_hours) }}
      parameters={{ id: user.id }}
      onDone={onMade}
    >
      <p>
        The person who opens it first chooses the user's password and is signed in. An earlier link
        ends now. The user's password and sessions end when the link is used.
      </p>
      <Select {...bind("expires_in_hours")} label="It works for" options={lifetimes} />
    </ChangeDialog>
  );
}
