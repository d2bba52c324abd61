import { useState } from "react";
import type { IssuedToken, TokenView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Secret } from "../../parts/secret.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useMayChange, useUser } from "../../shell/role.ts";

/** Credentials of scripts, which act as the user. */
export function Tokens() {
  const user = useUser();
  const tokens = useList("/tokens", { user_id: user?.id });
  const cache = useCache();
  const [isCreating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<TokenView>();
  const [issued, setIssued] = useState<IssuedToken>();
  return (
    <>
      <p className="muted">Scripts send them to the admin API. Each acts as you, until it ends.</p>
      <div>
        <Button onPress={() => setCreating(true)}>Create token</Button>
      </div>
      <Listing
        list={tokens}
        caption="Tokens"
        columns={[...columns, revocation(setRevoking)]}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence="You have no tokens."
            command={`sluice tokens create NAME --user ${user?.email ?? "EMAIL"}`}
          />
        }
      />
      {isCreating && (
        <CreateToken
          onClose={() => setCreating(false)}
          onCreated={(answer) => {
            setCreating(false);
            setIssued(answer);
            cache.refresh("/tokens");
          }}
        />
      )}
      {revoking !== undefined && (
        <RevokeToken token={revoking} onClose={() => setRevoking(undefined)} />
      )}
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
  { title: "Token", cell: ({ name }) => name },
  { title: "Begins with", cell: ({ hint }) => <code>{hint}</code>, isWideOnly: true },
  { title: "May", cell: ({ scopes }) => scopes.join(", "), isWideOnly: true },
  { title: "Last used", cell: ({ last_used_at: at }) => <Time at={at} isRelative /> },
  { title: "Ends", cell: ({ expires_at: at }) => <Time at={at} />, isWideOnly: true },
  { title: "Status", cell: (token) => <TokenStatus token={token} /> },
];

function isOver({ revoked_at: revokedAt, expires_at: end }: TokenView): boolean {
  return revokedAt !== null || Date.parse(end) <= Date.now();
}

function TokenStatus({ token }: { readonly token: TokenView }) {
  if (!isOver(token)) return <Badge tone="ok">active</Badge>;
  return <Badge tone="plain">{token.revoked_at === null ? "expired" : "revoked"}</Badge>;
}

function revocation(ask: (token: TokenView) => void): Column<TokenView> {
  return {
    title: "Actions",
    cell: (token) =>
      !isOver(token) && (
        <Button look="quiet" aria-label={`Revoke ${token.name}`} onPress={() => ask(token)}>
          Revoke...
        </Button>
      ),
  };
}

function RevokeToken({
  token,
  onClose,
}: {
  readonly token: TokenView;
  readonly onClose: () => void;
}) {
  const change = useChange("DELETE /tokens/{id}");
  const cache = useCache();
  const revoke = async (): Promise<void> => {
    const answer = await change.run(undefined, { id: token.id });
    if (!answer.ok) return;
    cache.refresh("/tokens");
    onClose();
  };
  return (
    <FormDialog
      title={`Revoke ${token.name}`}
      submit="Revoke token"
      isDanger
      {...change}
      onSubmit={revoke}
      onClose={onClose}
    >
      <p>
        Scripts that send it are refused at once, for good. Tokens that were made with it end, too.
        It was last used <Time at={token.last_used_at} isRelative />.
      </p>
    </FormDialog>
  );
}

const lifetimes = [
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];

function CreateToken({
  onClose,
  onCreated,
}: {
  readonly onClose: () => void;
  readonly onCreated: (answer: IssuedToken) => void;
}) {
  const mayWrite = useMayChange();
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [scope, setScope] = useState("read");
  const change = useChange("POST /tokens");
  const create = async (): Promise<void> => {
    const scopes: ("read" | "write")[] = scope === "read" ? ["read"] : ["read", "write"];
    const answer = await change.run({ name: name.trim(), scopes, expires_in_days: Number(days) });
    if (answer.ok) onCreated(answer.value);
  };
  return (
    <FormDialog
      title="Create a token"
      submit="Create token"
      {...change}
      onSubmit={create}
      onClose={onClose}
    >
      <Field
        label="Name"
        name="name"
        isRequired
        hasFocus
        value={name}
        onChange={setName}
        hint="What it is for, such as the script that sends it."
      />
      {mayWrite && (
        <Select
          label="May"
          name="scopes"
          value={scope}
          options={[
            { value: "read", label: "Only read" },
            { value: "write", label: "Read and change all that you may" },
          ]}
          onChange={setScope}
        />
      )}
      <Select
        label="Expires"
        name="expires_in_days"
        value={days}
        options={lifetimes}
        onChange={setDays}
      />
    </FormDialog>
  );
}
