import { useState } from "react";
import { Checkbox, Field } from "./field.tsx";

/** A password that is chosen, with the rules that it must keep. */
export function NewPassword({
  label = "New password",
  name,
  value,
  onChange,
  hasFocus = false,
}: {
  readonly label?: string;
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hasFocus?: boolean;
}) {
  const [isShown, setShown] = useState(false);
  return (
    <>
      <Field
        label={label}
        name={name}
        type={isShown ? "text" : "password"}
        autoComplete="new-password"
        isRequired
        hasFocus={hasFocus}
        value={value}
        onChange={onChange}
        hint="12 to 256 characters, not a common password, and not your email address."
      />
      <Checkbox label="Show the password" isSelected={isShown} onChange={setShown} />
    </>
  );
}
