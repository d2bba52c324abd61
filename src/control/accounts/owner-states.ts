import type { Key } from "../../domain/keys/key.ts";
import type { ControlView } from "../../store/control-store.ts";

export type OwnerState = "application_disabled" | "account_disabled" | undefined;

/** Whether what keys belong to is disabled, as of one state of the data; looked up once each. */
export class OwnerStates {
  readonly #view: Pick<ControlView, "applications" | "accounts">;
  readonly #byApplication = new Map<string, Promise<OwnerState>>();

  constructor(view: Pick<ControlView, "applications" | "accounts">) {
    this.#view = view;
  }

  whyDisabled(key: Pick<Key, "applicationId" | "accountId">): Promise<OwnerState> {
    const known = this.#byApplication.get(key.applicationId);
    if (known !== undefined) return known;
    const state = this.#read(key);
    this.#byApplication.set(key.applicationId, state);
    return state;
  }

  async #read({
    applicationId,
    accountId,
  }: Pick<Key, "applicationId" | "accountId">): Promise<OwnerState> {
    const application = await this.#view.applications.get(applicationId);
    if (application?.disabledAt !== undefined) return "application_disabled";
    const account = await this.#view.accounts.get(accountId);
    return account?.disabledAt === undefined ? undefined : "account_disabled";
  }
}
