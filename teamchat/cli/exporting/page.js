"use strict";
const box = document.getElementById("search");
const found = document.getElementById("found");
const articles = Array.from(document.querySelectorAll("article"), (article) => ({
  article,
  text: article.textContent.toLowerCase(),
  folds: Array.from(article.querySelectorAll("details"), (fold) => ({ fold, text: fold.textContent.toLowerCase() })),
}));
const unfolded = new Set();
function search() {
  const words = box.value.toLowerCase().trim().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.includes(word));
  for (const fold of unfolded) fold.open = false;
  unfolded.clear();
  let shown = 0;
  for (const { article, text, folds } of articles) {
    article.hidden = !has(text);
    if (article.hidden) continue;
    shown += 1;
    for (const { fold, text: inside } of words.length ? folds : []) {
      if (!fold.open && has(inside)) {
        fold.open = true;
        unfolded.add(fold);
      }
    }
  }
  found.value = words.length ? `${shown} of ${articles.length}` : "";
}
box.addEventListener("input", search);
box.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    box.value = "";
    search();
  }
});
box.parentElement.hidden = false;
