import { useEffect } from "react";
import type { Role } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { Field, Select } from "../../parts/field.tsx";
import { roleNames } from "../../shell/role.ts";

/** As it is typed; without an account the text is empty. */
export interface UserDraft {
  readonly name: string;
  readonly role: string;
  readonly account: string;
}

export const userLabels: Readonly<Record<keyof UserDraft, string>> = {
  name: "Name",
  role: "Role",
  account: "Account",
};

const hints: Readonly<Record<Role, string>> = {
  operator: "Does everything, in all accounts.",
  account_holder: "Sees and changes one account.",
  auditor: "Only reads: one account, or all.",
};

export function roleOf({ role }: UserDraft): Role {
  return role === "operator" || role === "auditor" ? role : "account_holder";
}

export function accountIdOf({ role, account }: UserDraft): string | null {
  return role === "operator" || account === "" ? null : account;
}

export function UserFields({
  draft,
  onChange,
}: {
  readonly draft: UserDraft;
  readonly onChange: (changed: Partial<UserDraft>) => void;
}) {
  const accounts = useList("/accounts", { limit: 500 }).query.data ?? [];
  const role = roleOf(draft);
  const first = accounts[0]?.id ?? "";
  useEffect(() => {
    const needsAccount = role === "account_holder" && draft.account === "" && first !== "";
    if (needsAccount) onChange({ account: first });
  }, [role, draft, first, onChange]);
  const all = { value: "", label: "All accounts" };
  return (
    <>
      <Field
        label={userLabels.name}
        name="name"
        value={draft.name}
        onChange={(name) => onChange({ name })}
      />
      <Select
        label={userLabels.role}
        name="role"
        value={role}
        hint={hints[role]}
        options={Object.entries(roleNames).map(([value, label]) => ({ value, label }))}
        onChange={(value) => onChange({ role: value })}
      />
      {role !== "operator" && (
        <Select
          label={userLabels.account}
          name="account_id"
          value={draft.account}
          options={[
            ...(role === "auditor" ? [all] : []),
            ...accounts.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          onChange={(account) => onChange({ account })}
        />
      )}
    </>
  );
}
