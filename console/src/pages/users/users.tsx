import { useState } from "react";
import type { IssuedLink, UserView } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Ask } from "../../parts/dialog.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Offered } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Page } from "../../parts/page.tsx";
import { Secret } from "../../parts/secret.tsx";
import type { Column } from "../../parts/table.tsx";
import { instantText, Time } from "../../parts/time.tsx";
import { roleNames, useRole } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
import { CreateUser } from "./create-user.tsx";
import { UserLink } from "./user-link.tsx";
import { UserSettings } from "./user-settings.tsx";
import { AppLink } from "../../parts/button.tsx";

/** Who can sign in? */
export function UsersPage() {
  const [url] = useUrl({ account: "" });
  const mayChange = useRole() === "operator";
  const [issued, setIssued] = useState<IssuedLink>();
  const users = useList("/users", { account_id: url.account });
  const create = mayChange && (
    <Ask text="Create user" look="primary">
      <Offered title="Create a user" of={["accounts"]}>
        {({ accounts }) => <CreateUser accounts={accounts} onCreated={setIssued} />}
      </Offered>
    </Ask>
  );
  const chosen = users.query.data?.find(({ account_id: id }) => id === url.account)?.account;
  const isFiltered = url.account !== "";
  return (
    <Page title="Users" question="Who can sign in?" actions={create}>
      <div className="row">
        <Chip param="account" name="Account" text={chosen} />
      </div>
      <Listing
        list={users}
        caption="Users"
        columns={mayChange ? [...columns, actionsFor(setIssued)] : columns}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence={isFiltered ? "No user has this account." : "There are no users yet."}
            action={!isFiltered && create}
            command="sluice users create EMAIL --role ROLE"
          />
        }
      />
      {issued !== undefined && (
        <Secret
          title={`The link for ${issued.user.email}`}
          what="link"
          advice={`It works once, until ${instantText(issued.expires_at)}. Send it only to this user: the person who opens it chooses the password and is signed in.`}
          secret={issued.url}
          onStored={() => setIssued(undefined)}
        />
      )}
    </Page>
  );
}

const columns: readonly Column<UserView>[] = [
  ["User", ({ email }) => email],
  ["Name", ({ name }) => name, "wide"],
  ["Role", ({ role }) => roleNames[role]],
  ["Account", (user) => <AccountOf user={user} />, "wide"],
  ["Signs in by", (user) => waysOf(user), "wide"],
  ["Last sign-in", ({ last_sign_in_at: at }) => <Time at={at} isRelative />, "wide"],
  ["Status", (user) => <UserStatus user={user} />],
];

function actionsFor(onLink: (link: IssuedLink) => void): Column<UserView> {
  const cell = (user: UserView) => (
    <span className="row">
      {user.disabled_at === null && (
        <Ask text="Link..." label={`Make a link for ${user.email}`} look="quiet">
          <UserLink user={user} onMade={onLink} />
        </Ask>
      )}
      <Ask text="Change..." label={`Change ${user.email}`} look="quiet">
        <Offered title={`Change ${user.email}`} of={["accounts"]}>
          {({ accounts }) => <UserSettings accounts={accounts} user={user} />}
        </Offered>
      </Ask>
    </span>
  );
  return ["Actions", cell];
}

function AccountOf({ user: { account_id: id, account } }: { readonly user: UserView }) {
  if (id === null) return <span className="muted">all</span>;
  return <AppLink to={`/accounts/${id}`}>{account ?? id}</AppLink>;
}

function UserStatus({ user }: { readonly user: UserView }) {
  if (user.disabled_at !== null) return <Badge tone="warn">disabled</Badge>;
  const isInvited = user.last_sign_in_at === null;
  return (
    <Badge tone={isInvited ? "plain" : "ok"}>{isInvited ? "never signed in" : "active"}</Badge>
  );
}

function waysOf({ has_password: password, has_single_sign_on: single, ...user }: UserView): string {
  if (password && single) return "password, single sign-on";
  if (password) return "password";
  if (single) return "single sign-on";
  return user.last_sign_in_at === null ? "nothing yet" : "a link";
}
