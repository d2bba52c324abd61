import type { KeyView, SecretView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache } from "../../api/use-read.ts";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/time.tsx";

/** Ends one secret for good; the other goes on. */
export function EndSecret({
  view,
  secret,
  lastUsedAt,
  onClose,
  onEnded = onClose,
}: {
  readonly view: KeyView;
  readonly secret: SecretView;
  readonly lastUsedAt: string | null;
  readonly onClose: () => void;
  readonly onEnded?: () => void;
}) {
  const cache = useCache();
  const change = useChange("DELETE /keys/{id}/secrets/{public_id}");
  const end = async (): Promise<void> => {
    const answer = await change.run(undefined, { id: view.id, public_id: secret.public_id });
    if (!answer.ok) return;
    cache.writeKey(answer.value);
    onEnded();
  };
  return (
    <FormDialog
      title={`End the secret ${secret.hint}`}
      submit="End secret"
      isDanger
      {...change}
      onSubmit={end}
      onClose={onClose}
    >
      <p>
        Calls that still send it are refused within a second. It was last used{" "}
        <Time at={lastUsedAt} isRelative />. The key and its other secret go on.
      </p>
    </FormDialog>
  );
}
