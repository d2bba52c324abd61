import type { Choices, Role } from "../../api/contract.ts";
import { Field, namedOptions, Select } from "../../parts/field.tsx";
import type { Bind } from "../../parts/form.tsx";
import { roleNames } from "../../shell/role.ts";

export const userLabels = {
  name: "Name",
  role: "Role",
  account_id: "Account",
};
/** As it is typed; without an account the text is empty. */
export type UserDraft = Readonly<Record<keyof typeof userLabels, string>>;

const hints: Readonly<Record<Role, string>> = {
  operator: "Does everything, in all accounts.",
  account_holder: "Sees and changes one account.",
  auditor: "Only reads: one account, or all.",
};

export function roleOf({ role }: UserDraft): Role {
  return role === "operator" || role === "auditor" ? role : "account_holder";
}

export function accountIdOf({ role, account_id: id }: UserDraft): string | null {
  return role === "operator" || id === "" ? null : id;
}

export function UserFields({
  accounts,
  draft,
  set,
  bind,
}: Pick<Choices, "accounts"> & {
  readonly draft: UserDraft;
  readonly set: (changed: Partial<UserDraft>) => void;
  readonly bind: Bind<UserDraft>;
}) {
  const role = roleOf(draft);
  const all = { value: "", label: "All accounts" };
  const choose = (chosen: string): void => {
    const needsAccount = chosen === "account_holder" && draft.account_id === "";
    set({ role: chosen, ...(needsAccount && { account_id: accounts[0]?.id ?? "" }) });
  };
  return (
    <>
      <Field {...bind("name")} label={userLabels.name} />
      <Select
        {...bind("role")}
        label={userLabels.role}
        hint={hints[role]}
        options={roleOptions}
        onChange={choose}
      />
      {role !== "operator" && (
        <Select
          {...bind("account_id")}
          label={userLabels.account_id}
          options={[...(role === "auditor" ? [all] : []), ...namedOptions(accounts)]}
        />
      )}
    </>
  );
}

export const roleOptions = Object.entries(roleNames).map(([value, label]) => ({ value, label }));
