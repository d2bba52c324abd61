import type { Role, UserView } from "../api/contract.ts";
import { useSession } from "../api/session.ts";

export const roleNames: Readonly<Record<Role, string>> = {
  operator: "Operator",
  account_holder: "Account holder",
  auditor: "Auditor",
};

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
