// The chromium that tests and pictures are made with.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

// The first has no windows, which nobody looks at and which are drawn all the same.
const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
const executablePath = names.map((name) => `/usr/bin/${name}`).find(existsSync);

/** Starts it, or says what to install. */
export async function launch() {
  if (!executablePath) throw new Error("no chromium here: apt-get install chromium-headless-shell");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
}
