import { useState } from "react";
import { Link } from "wouter";
import type { IssuedLink, UserView } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Select } from "../../parts/field.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Page } from "../../parts/page.tsx";
import { Secret } from "../../parts/secret.tsx";
import type { Column } from "../../parts/table.tsx";
import { instantText, Time } from "../../parts/time.tsx";
import { roleNames, useRole } from "../../shell/role.ts";
import { useHref, useUrl } from "../../url.ts";
import { CreateUser } from "./create-user.tsx";
import { UserLink } from "./user-link.tsx";
import { UserSettings } from "./user-settings.tsx";

type Asking = { readonly what: "link" | "settings"; readonly user: UserView } | "new" | undefined;

/** Who can sign in? */
export function UsersPage() {
  const [url, change] = useUrl({ account: "", role: "" });
  const mayChange = useRole() === "operator";
  const [asking, setAsking] = useState<Asking>();
  const [issued, setIssued] = useState<IssuedLink>();
  const users = useList("/users", { account_id: url.account, role: url.role });
  const close = (): void => setAsking(undefined);
  const linked = (link: IssuedLink | undefined): void => {
    close();
    setIssued(link);
  };
  const create = mayChange && (
    <Button look="primary" onPress={() => setAsking("new")}>
      Create user
    </Button>
  );
  const chosen = users.query.data?.find(({ account_id: id }) => id === url.account)?.account;
  const isFiltered = url.account !== "" || url.role !== "";
  return (
    <Page title="Users" question="Who can sign in?" actions={create}>
      <div className="row">
        <Select
          label="Role"
          isLabelHidden
          value={url.role}
          options={[
            { value: "", label: "All roles" },
            ...Object.entries(roleNames).map(([value, label]) => ({ value, label })),
          ]}
          onChange={(role) => change({ role })}
        />
        <Chip
          name="Account"
          value={url.account}
          text={chosen}
          onRemove={() => change({ account: "" })}
        />
      </div>
      <Listing
        list={users}
        caption="Users"
        columns={mayChange ? [...columns, actionsFor(setAsking)] : columns}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence={isFiltered ? "No user fits these filters." : "There are no users yet."}
            action={!isFiltered && create}
            command="sluice users create EMAIL --role ROLE"
          />
        }
      />
      {asking === "new" && <CreateUser onClose={close} onCreated={linked} />}
      {typeof asking === "object" && asking.what === "link" && (
        <UserLink user={asking.user} onClose={close} onMade={linked} />
      )}
      {typeof asking === "object" && asking.what === "settings" && (
        <UserSettings user={asking.user} onClose={close} />
      )}
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
  { title: "User", cell: ({ email }) => email },
  { title: "Name", cell: ({ name }) => name, isWideOnly: true },
  { title: "Role", cell: ({ role }) => roleNames[role] },
  { title: "Account", cell: (user) => <AccountOf user={user} />, isWideOnly: true },
  { title: "Signs in by", cell: (user) => waysOf(user), isWideOnly: true },
  {
    title: "Last sign-in",
    cell: ({ last_sign_in_at: at }) => <Time at={at} isRelative />,
    isWideOnly: true,
  },
  { title: "Status", cell: (user) => <UserStatus user={user} /> },
];

function actionsFor(ask: (asking: Asking) => void): Column<UserView> {
  return {
    title: "Actions",
    cell: (user) => (
      <span className="row">
        {user.disabled_at === null && (
          <Button
            look="quiet"
            aria-label={`Make a link for ${user.email}`}
            onPress={() => ask({ what: "link", user })}
          >
            Link...
          </Button>
        )}
        <Button
          look="quiet"
          aria-label={`Change ${user.email}`}
          onPress={() => ask({ what: "settings", user })}
        >
          Change...
        </Button>
      </span>
    ),
  };
}

function AccountOf({ user: { account_id: id, account } }: { readonly user: UserView }) {
  const href = useHref();
  if (id === null) return <span className="muted">all</span>;
  return <Link href={href(`/accounts/${id}`)}>{account ?? id}</Link>;
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
