import { useState } from "react";
import type { AccountView, Erased } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useList, useRead } from "../../api/use-read.ts";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded } from "../../parts/page.tsx";

/** As many as one page of a list has. */
const mostCounted = 500;

/** Shows what would go, and asks for the name of the account. */
export function EraseAccount({
  view,
  onClose,
  onErased,
}: {
  readonly view: AccountView;
  readonly onClose: () => void;
  readonly onErased: (erased: Erased) => void;
}) {
  const [confirm, setConfirm] = useState("");
  const change = useChange("POST /accounts/{id}/erase");
  const cache = useCache();
  const own = { account_id: view.id, limit: mostCounted };
  const keys = useList("/keys", own);
  const applications = useList("/applications", own);
  const users = useList("/users", own);
  const usage = useRead("/usage/totals", { account_id: view.id, since: "3650d" });
  const lists = [keys, applications, users].map(({ query }) => query);
  const failed = [...lists, usage].find(({ error }) => error !== null) ?? lists[0];
  const isKnown = usage.data !== undefined && lists.every(({ data }) => data !== undefined);
  const erase = async (): Promise<void> => {
    if (!isKnown) return;
    const answer = await change.run({ confirm }, { id: view.id });
    if (!answer.ok) return;
    for (const path of ["/accounts", "/applications", "/keys", "/users"] as const) {
      cache.refresh(path);
    }
    onErased(answer.value);
  };
  const counted = (list: typeof keys | typeof applications | typeof users): string => {
    const count = list.query.data?.length ?? 0;
    return count < mostCounted ? exactText(count) : `${exactText(count)} or more`;
  };
  return (
    <FormDialog
      title={`Erase ${view.name}`}
      submit="Erase account"
      isDanger
      {...change}
      onSubmit={erase}
      onClose={onClose}
    >
      <Loaded query={{ ...(failed ?? usage), data: isKnown ? true : undefined }}>
        {() => (
          <>
            <p>This cannot be undone. It removes for good, and ends its running calls:</p>
            <ul>
              <li>Keys: {counted(keys)}</li>
              <li>Applications: {counted(applications)}</li>
              <li>Users, with their sessions and tokens: {counted(users)}</li>
              <li>Calls in the ledger: {exactText(usage.data?.data[0]?.calls ?? 0)}</li>
            </ul>
            <p>
              The audit keeps a record. To stop its keys for a while, disable the account instead.
            </p>
            <Field
              label={`Type its name, ${view.name}`}
              name="confirm"
              isRequired
              value={confirm}
              onChange={setConfirm}
            />
          </>
        )}
      </Loaded>
    </FormDialog>
  );
}
