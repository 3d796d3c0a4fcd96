"""Recall: ranking, fusion, selection and rendering of memories."""
