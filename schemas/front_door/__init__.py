"""Front door: conversion of turns in common formats into the contract `Turn`. See docs/design/front-door.md."""
