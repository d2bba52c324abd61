import { useState } from "react";
import type { IssuedToken, TokenView } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Ask } from "../../parts/dialog.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { ChangeDialog, useDraft } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Secret } from "../../parts/secret.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useMayChange, useUser } from "../../shell/role.ts";

/** Credentials of scripts, which act as the user. */
export function Tokens() {
  const user = useUser();
  const tokens = useList("/tokens", { user_id: user?.id });
  const [issued, setIssued] = useState<IssuedToken>();
  return (
    <>
      <p className="muted">Scripts send them to the admin API. Each acts as you, until it ends.</p>
      <Ask text="Create token">
        <CreateToken onCreated={setIssued} />
      </Ask>
      <Listing
        list={tokens}
        caption="Tokens"
        columns={columns}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence="You have no tokens."
            command={`sluice tokens create NAME --user ${user?.email ?? "EMAIL"}`}
          />
        }
      />
      {issued !== undefined && (
        <Secret
          title={`The token ${issued.token.name}`}
          what="token"
          advice="Store it where your script reads it, such as in SLUICE_ADMIN_TOKEN."
          secret={issued.secret}
          onStored={() => setIssued(undefined)}
        />
      )}
    </>
  );
}

const columns: readonly Column<TokenView>[] = [
  ["Token", ({ name }) => name],
  ["Begins with", ({ hint }) => <code>{hint}</code>, "wide"],
  ["May", ({ scopes }) => scopes.join(", "), "wide"],
  ["Last used", ({ last_used_at: at }) => <Time at={at} isRelative />],
  ["Ends", ({ expires_at: at }) => <Time at={at} />, "wide"],
  ["Status", (token) => <TokenStatus token={token} />],
  [
    "Actions",
    (token) =>
      !isOver(token) && (
        <Ask text="Revoke..." label={`Revoke ${token.name}`} look="quiet">
          <RevokeToken token={token} />
        </Ask>
      ),
  ],
];

function isOver({ revoked_at: revokedAt, expires_at: end }: TokenView): boolean {
  return revokedAt !== null || Date.parse(end) <= Date.now();
}

function TokenStatus({ token }: { readonly token: TokenView }) {
  if (!isOver(token)) return <Badge tone="ok">active</Badge>;
  return <Badge tone="plain">{token.revoked_at === null ? "expired" : "revoked"}</Badge>;
}

function RevokeToken({ token }: { readonly token: TokenView }) {
  const { id, name, last_used_at: at } = token;
  return (
    <ChangeDialog
      title={`Revoke ${name}`}
      submit="Revoke token"
      isDanger
      change="DELETE /tokens/{id}"
      body={undefined}
      parameters={{ id }}
    >
      <p>
        Scripts that send it are refused at once, for good. Tokens that were made with it end, too.
        It was last used <Time at={at} isRelative />.
      </p>
    </ChangeDialog>
  );
}

const lifetimes = [
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];

function CreateToken({ onCreated }: { readonly onCreated: (answer: IssuedToken) => void }) {
  const mayWrite = useMayChange();
  const { draft, bind } = useDraft({ name: "", scopes: "read", expires_in_days: "90" });
  return (
    <ChangeDialog
      title="Create a token"
      submit="Create token"
      change="POST /tokens"
      body={{
        name: draft.name.trim(),
        scopes: draft.scopes === "read" ? ["read"] : ["read", "write"],
        expires_in_days: Number(draft.expires_in_days),
      }}
      onDone={onCreated}
    >
      <Field
        {...bind("name")}
        label="Name"
        isRequired
        hasFocus
        hint="What it is for, such as the script that sends it."
      />
      {mayWrite && <Select {...bind("scopes")} label="May" options={scopes} />}
      <Select {...bind("expires_in_days")} label="Expires" options={lifetimes} />
    </ChangeDialog>
  );
}

const scopes = [
  { value: "read", label: "Only read" },
  { value: "write", label: "Read and change all that you may" },
];
