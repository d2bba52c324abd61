import type { AuditEntryView, Role, UserView } from "../api/contract.ts";
import { useSession } from "../api/session.ts";

export const roleNames: Readonly<Record<Role, string>> = {
  operator: "Operator",
  account_holder: "Account holder",
  auditor: "Auditor",
};

const actorKinds: Readonly<Record<AuditEntryView["actor"]["kind"], string>> = {
  session: "a user",
  token: "a token",
  local: "the gateway's machine",
  system: "the gateway",
};

/** Who made a change. */
export function actorName({ id, kind, name }: AuditEntryView["actor"]): string {
  return id === null ? actorKinds[kind] : name;
}

/** The user who is signed in. Only for what the shell shows. */
export function useUser(): UserView | undefined {
  const session = useSession();
  return session.kind === "signed-in" ? (session.session.user ?? undefined) : undefined;
}

export function useRole(): Role {
  return useUser()?.role ?? "auditor";
}

/** Auditors see the same pages without actions. */
export function useMayChange(): boolean {
  return useRole() !== "auditor";
}

/** Whether the user sees all accounts, so that names of accounts mean something. */
export function useSeesAll(): boolean {
  return useUser()?.account_id === null;
}
